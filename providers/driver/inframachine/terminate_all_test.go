package inframachine

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/batch"
)

// ending is a cloud that gives the prepared answers and records what it is asked to terminate.
type ending struct {
	driver.Driver[driver.Object]
	seen    []driver.Answer[driver.Instance]
	refused map[string]error
	calls   int
	ended   []string
	// looks are the handles of the latest look; incarnations are those of what was to be ended.
	looks        []driver.Handle
	incarnations []string
}

func (e *ending) Observe(_ context.Context, _ driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	e.looks = handles
	return e.seen
}

func (e *ending) Delete(_ context.Context, _ driver.Scope, handles []driver.Handle) []error {
	e.calls++
	answers := make([]error, len(handles))
	for i, handle := range handles {
		e.ended, e.incarnations = append(e.ended, handle.ProviderID), append(e.incarnations, handle.Incarnation)
		answers[i] = e.refused[handle.ProviderID]
	}
	return answers
}

func (e *ending) Mark(driver.Handle) string { return "the mark" }

func TestOnlyOwnInstancesThatAreNotEndingAreEnded(t *testing.T) {
	g := NewWithT(t)
	own := func(id string, state driverv1.InstanceState) driver.Answer[driver.Instance] {
		return driver.Answer[driver.Instance]{
			Value: driver.Instance{ProviderID: id, State: state, OwnerUID: "u", Owner: "ns/m", Incarnation: "n-" + id},
		}
	}
	foreign := func(id string, state driverv1.InstanceState) driver.Answer[driver.Instance] {
		answer := own(id, state)
		answer.Value.OwnerUID = "other"
		return answer
	}
	lost, protected := errors.New("lost"), errors.New("protected")
	unseen := own("unseen", driverv1.InstanceRunning)
	unseen.Err = lost
	cloud := &ending{refused: map[string]error{"protected": protected}, seen: []driver.Answer[driver.Instance]{
		unseen, foreign("foreign", driverv1.InstanceRunning), foreign("foreign, ended", driverv1.InstanceTerminated),
		own("ending", driverv1.InstanceTerminating), own("ended", driverv1.InstanceTerminated),
		own("protected", driverv1.InstanceRunning), own("running", driverv1.InstanceRunning), own("stopped", driverv1.InstanceStopped),
	}}
	var handles []driver.Handle
	for _, answer := range cloud.seen {
		handles = append(handles, driver.Handle{ProviderID: answer.Value.ProviderID, OwnerUID: "u", Owner: "ns/m"})
	}
	r := &Reconciler[driver.Object]{cloud: cloud, Options: Options{CallTimeout: time.Hour}}
	answers := r.terminateAll(t.Context(), driver.Scope{Location: ""}, handles)
	g.Expect(cloud.ended).To(Equal([]string{"protected", "running", "stopped"}))
	g.Expect(cloud.incarnations).
		To(Equal([]string{"n-protected", "n-running", "n-stopped"}), "what was looked at is ended, whatever has its name since")
	g.Expect(cloud.looks).To(HaveEach(HaveField("Ending", true)))
	g.Expect(handles).To(HaveEach(HaveField("Ending", false)), "they are the batch's")
	g.Expect(answers[0].Err).To(MatchError(lost))
	g.Expect(foreignOf(answers[1].Err)).NotTo(BeNil())
	g.Expect(answers[5].Err).To(MatchError(protected))
	for i, want := range map[int]driverv1.InstanceState{
		2: driverv1.InstanceTerminated, 3: driverv1.InstanceTerminating, 4: driverv1.InstanceTerminated,
		6: driverv1.InstanceTerminating, 7: driverv1.InstanceTerminating,
	} {
		g.Expect(answers[i].Err).NotTo(HaveOccurred())
		g.Expect(answers[i].Value.instance).To(And(HaveField("State", want), HaveField("ProviderID", handles[i].ProviderID)))
		g.Expect(answers[i].Value.accepted).To(Equal(i >= 6), "the cloud was asked, and accepted")
	}

	cloud.seen, cloud.calls = cloud.seen[:5], 0
	r.terminateAll(t.Context(), driver.Scope{Location: ""}, handles[:5])
	g.Expect(cloud.calls).To(BeZero(), "there is nothing to ask for")
}

func TestAwaitingAnAnswer(t *testing.T) {
	since := time.Unix(1000, 0)
	throttled := driver.NewThrottleError("Terminate", "T", 0, errors.New("slow down"))
	for name, test := range map[string]struct {
		pending   batch.Pending
		passed    time.Duration
		after     time.Duration
		unsettled bool
		reason    string
	}{
		"at once":               {batch.Pending{Since: since}, 0, answerDue, true, ""},
		"just before it is due": {batch.Pending{Since: since}, answerDue - time.Millisecond, time.Millisecond, true, ""},
		"when it is due":        {batch.Pending{Since: since}, answerDue, answerLate, false, driverv1.TerminatingInstanceReason},
		"throttled":             {batch.Pending{Since: since, Throttled: throttled}, 0, answerLate, false, explainDeletion(throttled).reason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := &Reconciler[driver.Object]{}, &scope[driver.Object]{}
			s.Now = since.Add(test.passed)
			g.Expect(r.awaitAnswer(s, test.pending, &explanation{driverv1.TerminatingInstanceReason, "m"})).To(Equal(outcome.WaitFor(test.after)))
			g.Expect(s.observed.unsettled).To(Equal(test.unsettled))
			reason := ""
			if s.observed.state != nil {
				reason = s.observed.state.reason
			}
			g.Expect(reason).To(Equal(test.reason))
		})
	}
}
