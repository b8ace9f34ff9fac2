package inframachine

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

var (
	nine      = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	expired   = driver.NewAuthError("DescribeInstances", "AuthFailure", errors.New("expired"))
	throttled = driver.NewThrottleError("DescribeInstances", "RequestLimitExceeded", 0, errors.New("slow down"))
)

func runs(conditions ...metav1.Condition) *driverv1.MachineStatus {
	ready := metav1.Condition{Type: driverv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: driverv1.InstanceRunningReason}
	return &driverv1.MachineStatus{Conditions: append([]metav1.Condition{ready}, conditions...)}
}

func reachable(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type:               driverv1.CloudReachableCondition,
		Status:             status,
		Reason:             reason,
		Message:            message,
		LastTransitionTime: metav1.NewTime(nine),
	}
}

func TestCloudReachable(t *testing.T) {
	listed := inventory.View{ListedAt: nine}
	lost := inventory.View{ListedAt: nine, Err: expired, Outage: &inventory.Outage{LastListed: nine, Since: nine, Err: expired}}
	never := inventory.View{Err: throttled, Outage: &inventory.Outage{Since: nine.Add(time.Hour), Err: throttled}}
	failure := driverv1.InstanceVanishedReason
	failed := runs(reachable(metav1.ConditionFalse, driverv1.UnauthorizedReason, "m"))
	failed.FailureReason = &failure

	for name, test := range map[string]struct {
		status   *driverv1.MachineStatus
		changes  bool
		observed observed
		view     inventory.View
		want     string
		message  string
	}{
		"no write for a recovery alone":  {status: runs(), view: listed, want: "none"},
		"a recovery with another change": {status: runs(), changes: true, view: listed, want: "True InstancesListed"},
		"nothing known yet":              {status: runs(), changes: true, want: "none"},
		"one failed list":                {status: runs(reachable("True", "InstancesListed", "")), view: inventory.View{ListedAt: nine, Err: expired}, want: "True InstancesListed"},
		"an outage": {status: runs(), view: lost, want: "False Unauthorized",
			message: "Instances have not been listed successfully since 2026-11-22T09:00:00Z; the status of this instance may be out of date, and Ready stays as it was. " +
				"The cloud answers: DescribeInstances: AuthFailure: expired. Check the permissions of identityRef, or of the provider's own credentials where that is not set"},
		"an outage from the start of the process on": {status: runs(), view: never, want: "False Throttled",
			message: "Instances have not been listed successfully since this provider began to list them at 2026-11-22T10:00:00Z; the status of this instance may be out of date, and Ready stays as it was. " +
				"The cloud answers: DescribeInstances: RequestLimitExceeded: slow down"},
		"what was reported stays":             {status: runs(reachable("False", "Unauthorized", "since long ago")), view: lost, want: "False Unauthorized", message: "since long ago"},
		"a restart in an outage adds nothing": {status: runs(reachable("False", "Unauthorized", "since long ago")), view: inventory.View{Err: expired}, want: "False Unauthorized", message: "since long ago"},
		"another reason after a restart": {status: runs(reachable("False", "Unauthorized", "since long ago")), view: never, want: "False Throttled",
			message: "Instances have not been listed successfully since before 2026-11-22T09:00:00Z; the status of this instance may be out of date, and Ready stays as it was. " +
				"The cloud answers: DescribeInstances: RequestLimitExceeded: slow down"},
		"the first outage of this process": {status: runs(reachable("True", "InstancesListed", "")), view: never, want: "False Throttled",
			message: "Instances have not been listed successfully since this provider began to list them at 2026-11-22T10:00:00Z; the status of this instance may be out of date, and Ready stays as it was. " +
				"The cloud answers: DescribeInstances: RequestLimitExceeded: slow down"},
		"no end while lists fail": {status: runs(reachable("False", "Unauthorized", "m")), view: inventory.View{ListedAt: nine, Err: expired}, want: "False Unauthorized", message: "m"},
		"the end":                 {status: runs(reachable("False", "Unauthorized", "m")), view: listed, want: "True InstancesListed"},
		"a failed machine":        {status: failed, view: lost, want: "none"},
		"nothing of paused":       {status: runs(), observed: observed{pausedBy: []string{"x"}}, view: lost, want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := test.status.DeepCopy()
			if test.changes {
				test.status.InstanceState = driverv1.InstanceRunning
			}
			s := newTestScope(&testMachine{Status: *before}, nine.Add(2*time.Hour), testWriter{})
			s.Object.Status = *test.status
			s.observed, s.view = test.observed, test.view
			s.deriveReachable()
			*test.status = s.Object.Status
			g.Expect(conditionOf(*test.status, driverv1.CloudReachableCondition)).To(Equal(test.want))
			if test.want != "none" {
				g.Expect(meta.FindStatusCondition(test.status.Conditions, driverv1.CloudReachableCondition).Message).To(Equal(test.message))
			}
			g.Expect(conditionOf(*test.status, driverv1.ReadyCondition)).To(Equal("True InstanceRunning"), "whatever the cloud's API does")
		})
	}
}

// TestAGenerationAloneIsNoWrite: a spec that was changed while lists failed is no reason to write the condition once they succeed.
func TestAGenerationAloneIsNoWrite(t *testing.T) {
	g := NewWithT(t)
	s := newTestScope(&testMachine{Status: *runs(reachable("True", "InstancesListed", ""))}, nine, testWriter{})
	s.Object.Generation, s.view = 2, inventory.View{ListedAt: nine}
	s.deriveReachable()
	g.Expect(s.Object.Status).To(Equal(s.Original.Status))
	s.Object.Status.InstanceState = driverv1.InstanceStopped
	s.deriveReachable()
	g.Expect(meta.FindStatusCondition(s.Object.Status.Conditions, driverv1.CloudReachableCondition).ObservedGeneration).
		To(BeEquivalentTo(2), "with another change")
}

func TestAnOutageIsRecordedOnce(t *testing.T) {
	unreachable := runs(reachable("False", "Unauthorized", "m"))
	outage := func() *inventory.Outage { return &inventory.Outage{Since: nine, Err: expired} }
	known := outage()
	known.FirstReport()
	for name, test := range map[string]struct {
		outage        *inventory.Outage
		before, after *driverv1.MachineStatus
		want          int
	}{
		"an outage":                        {outage(), runs(), unreachable, 1},
		"an outage after a recovery":       {outage(), runs(reachable("True", "InstancesListed", "")), unreachable, 1},
		"no outage":                        {nil, runs(), unreachable, 0},
		"recorded before":                  {outage(), unreachable, unreachable, 0},
		"not reported":                     {outage(), runs(), runs(), 0},
		"another machine of the scope did": {known, runs(), unreachable, 0},
		"it is reported to be over":        {outage(), runs(), runs(reachable("True", "InstancesListed", "")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope[*testMachine]{view: inventory.View{Outage: test.outage}}
			s.addOutage(test.before, test.after)
			recorder := events.NewFakeRecorder(2)
			s.events.Record(recorder, nil)
			NewWithT(t).Expect(recorder.Events).To(HaveLen(test.want))
		})
	}
}
