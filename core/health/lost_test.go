package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors" //nolint:staticcheck // as long as upstream has it
)

// terminated has the provider report that the instance no longer exists.
func terminated(f *Facts) {
	f.Machine.Status.Conditions = append(f.Machine.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineInfrastructureReadyCondition, Status: "False", Reason: "InstanceTerminated", LastTransitionTime: ago(time.Second),
	})
}

// failedWith has a provider of the older contract report a permanent failure.
//
//nolint:staticcheck // as long as upstream has it
func failedWith(reason, message string) func(*Facts) {
	return func(f *Facts) {
		f.Machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{
			FailureReason: ptr.To(capierrors.MachineStatusError(reason)), FailureMessage: ptr.To(message),
		}}
	}
}

// TestWhatIsLostPermanentlyWaitsForNoGrace: Nodes that have yet to report do not bring an instance back.
func TestWhatIsLostPermanentlyWaitsForNoGrace(t *testing.T) {
	got := Judge(policy(), facts(terminated, func(f *Facts) { f.NotBefore = now.Add(time.Hour) }))
	NewWithT(t).Expect(got.State).To(Equal(Unhealthy))
}

// TestALossIsReportedOnce although both contracts report it.
func TestALossIsReportedOnce(t *testing.T) {
	got := Judge(policy(), facts(terminated, failedWith("CreateError", "gone")))
	NewWithT(t).Expect(got.Message).To(And(ContainSubstring("InstanceTerminated"), Not(ContainSubstring("terminal failure"))))
}

// TestAFailureWithoutAReason is one.
func TestAFailureWithoutAReason(t *testing.T) {
	g := NewWithT(t)
	got := Judge(policy(), facts(failedWith("", "it broke")))
	g.Expect(got.State).To(Equal(Unhealthy))
	g.Expect(got.Message).To(ContainSubstring("without a reason"))
	g.Expect(Judge(policy(), facts(failedWith("", ""))).State).To(Equal(Healthy))
}

// TestAControlPlaneWaitsForTheInfrastructure of its Cluster, though not for itself.
func TestAControlPlaneWaitsForTheInfrastructure(t *testing.T) {
	g := NewWithT(t)
	first := func(f *Facts) {
		f.Machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
		f.Cluster.Status.Conditions = f.Cluster.Status.Conditions[:1]
	}
	g.Expect(Judge(policy(), facts(first)).State).To(Equal(Healthy))
	got := Judge(policy(), facts(first, func(f *Facts) { f.Cluster.Status.Conditions[0].Status = "False" }))
	g.Expect(got.State).To(Equal(Pending))
	g.Expect(got.Message).To(ContainSubstring(clusterv1.ClusterInfrastructureReadyCondition))
}

// TestOneTimeoutEnablesTheDefaultPolicy.
func TestOneTimeoutEnablesTheDefaultPolicy(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Defaults{}.Enabled()).To(BeFalse())
	g.Expect(Defaults{CreationTimeout: time.Minute}.Enabled()).To(BeTrue())
	g.Expect(Defaults{HealthTimeout: time.Minute}.Enabled()).To(BeTrue())
}

// TestWithoutHistories, as for a first assessment: what is amiss counts by what the objects say.
func TestWithoutHistories(t *testing.T) {
	forgotten := func(f *Facts) { f.History, f.ClusterHistory = nil, nil }
	for name, test := range map[string]struct {
		change func(*Facts)
		want   State
	}{
		"well":          {func(*Facts) {}, Healthy},
		"not ready":     {ready("False", time.Minute), Pending},
		"not for long":  {ready("False", time.Hour), Unhealthy},
		"the Node gone": {func(f *Facts) { f.Node = nil }, Pending},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Judge(policy(), facts(test.change, forgotten)).State).To(Equal(test.want))
		})
	}
}

// TestOnlyTheDecisiveSpeak: of several policies those that say what is concluded are quoted, and the earliest moment counts.
func TestOnlyTheDecisiveSpeak(t *testing.T) {
	g := NewWithT(t)
	got := Combine([]Judgement{
		{Policy: "a", Assessment: Assessment{State: Pending, Message: "waits", Next: now}},
		{Policy: "b", Assessment: Assessment{State: Unhealthy, Message: "ill", Since: now}},
	})
	g.Expect(got.Message).To(Equal("b: ill"))
	g.Expect(got.Next).To(Equal(now))
	g.Expect(earlier(now, time.Time{})).To(Equal(now))
}

// TestWhatIsNoRange is refused, be it that its beginning is one.
func TestWhatIsNoRange(t *testing.T) {
	for _, text := range []string{"[0-x]", "[x-3]", "[3-2]", "[3]", "[-1-3]"} {
		_, _, err := parseRange(text)
		NewWithT(t).Expect(err).To(HaveOccurred(), text)
	}
}
