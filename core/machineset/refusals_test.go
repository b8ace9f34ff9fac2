package machineset

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	. "millwright.dev/test/coretest/builder"
)

// TestWhatFailsIsReported: by one condition at least, whatever the set is doing; and each message is whole.
func TestWhatFailsIsReported(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "m", errors.New("exceeded quota"))
	other := apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "z", errors.New("exceeded quota"))
	const line = "The last attempt failed and is repeated: "
	up, down := clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetScalingDownCondition
	gone, remediating := clusterv1.MachineSetDeletingCondition, clusterv1.MachineSetRemediatingCondition
	slow := func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: Epoch.Add(-time.Hour)} }
	const slowLine = "\nBeing deleted for more than 15 minutes:\n* Machine slow: being deleted"
	unread := func(s *scope) { s.machinesRead = false }
	wrong := func(s *scope) { s.specErrors = []string{"spec.x"} }
	type reported struct{ kind, status, reason, message string }
	tests := map[string]struct {
		scope   *scope
		failure error
		want    reported
	}{
		"nothing is missing":                            {scopeOf(1, Machine("a")), refused, reported{up, "False", "InternalError", line + refused.Error()}},
		"nothing is missing, and what passes by itself": {scopeOf(1, Machine("a")), errors.New("no answer"), reported{up, "False", "NotScalingUp", ""}},
		"too few":                     {scopeOf(2, Machine("a")), refused, reported{up, "True", "ScalingUp", "Scaling up from 1 to 2 replicas: the last attempt failed and is repeated: " + refused.Error()}},
		"too few, and nothing failed": {scopeOf(2, Machine("a")), nil, reported{up, "True", "ScalingUp", "Scaling up from 1 to 2 replicas"}},
		"one cannot be completed": {with(scopeOf(1, Machine("a")), func(s *scope) { s.refusals = []string{"no quota"} }), nil,
			reported{up, "True", "ScalingUpBlocked", "Machines cannot be completed:\n* no quota"}},
		"several cannot, in any order": {with(scopeOf(1, Machine("a")), func(s *scope) { s.refusals = []string{"z", "x", "y"} }), nil,
			reported{up, "True", "ScalingUpBlocked", "Machines cannot be completed:\n* x (and 2 others)"}},
		"two cannot, and one is missing": {with(scopeOf(1), func(s *scope) { s.refusals = []string{"z", "x"} }), nil,
			reported{up, "True", "ScalingUpBlocked", "Scaling up from 0 to 1 replicas is blocked:\n* x (and 1 other)"}},
		"one is not right": {with(scopeOf(1, Machine("a")), func(s *scope) { s.machineErrors = []string{"Machine a has no template"} }), nil,
			reported{up, "False", "NotScalingUp", "Machines that cannot be completed:\n* Machine a has no template"}},
		"a spec that is wrong, going": {with(with(scopeOf(1, Machine("a")), wrong), goes), nil, reported{up, "False", "NotScalingUp", ""}},
		"too many":                    {scopeOf(1, Machine("a"), Machine("b")), refused, reported{down, "True", "ScalingDown", "Scaling down from 2 to 1 replicas; being deleted: none\n" + line + refused.Error()}},
		"too many, and several stay": {scopeOf(0, Machine("a"), Machine("b")), kerrors.NewAggregate([]error{other, refused}),
			reported{down, "True", "ScalingDown", "Scaling down from 2 to 0 replicas; being deleted: none\n" + line + refused.Error() + " (and 1 more)"}},
		"too many, not too few":       {scopeOf(0, Machine("a")), refused, reported{up, "False", "NotScalingUp", ""}},
		"too many, slowly":            {scopeOf(0, Machine("slow", slow)), nil, reported{down, "True", "ScalingDown", "Scaling down from 1 to 0 replicas; being deleted: slow" + slowLine}},
		"too many, with a wrong spec": {with(scopeOf(0, Machine("a")), wrong), nil, reported{down, "Unknown", "InvalidSpec", "See ScalingUp"}},
		"going, with a wrong spec":    {with(with(scopeOf(0, Machine("a")), wrong), goes), nil, reported{down, "True", "ScalingDown", "Scaling down from 1 to 0 replicas; being deleted: none"}},
		"too many, as far as is known": {with(scopeOf(0, Machine("a")), unread), errors.New("no answer"),
			reported{down, "Unknown", "InternalError", "Cannot read the Machines: no answer"}},
		"ready, as far as is known":      {with(scopeOf(1), unread), nil, reported{clusterv1.MachineSetMachinesReadyCondition, "Unknown", "InternalError", "The Machines are not known"}},
		"up to date, as far as is known": {with(scopeOf(1), unread), nil, reported{clusterv1.MachineSetMachinesUpToDateCondition, "Unknown", "InternalError", "The Machines are not known"}},
		"healthy, as far as is known":    {with(scopeOf(1), unread), nil, reported{remediating, "Unknown", "InternalError", "The Machines are not known"}},
		"none that is up to date":        {scopeOf(1), nil, reported{clusterv1.MachineSetMachinesUpToDateCondition, "True", "NoReplicas", ""}},
		"updated by a tool that does not know": {scopeOf(1, Machine("a", func(m *clusterv1.Machine) {
			SetConditions(m, conditions.Unknown(clusterv1.MachineUpToDateCondition, "Asking", "no answer"))
		})), nil, reported{clusterv1.MachineSetMachinesUpToDateCondition, "Unknown", "UpToDateUnknown", "* Machine a: no answer"}},
		"kubelet behind, of a deployment": {with(scopeOf(1, Machine("a", func(m *clusterv1.Machine) {
			SetConditions(m, conditions.False(clusterv1.MachineUpToDateCondition, clusterv1.MachineUpToDateUpdatingReason, "In-place update"))
		})), func(s *scope) { s.deployment = &clusterv1.MachineDeployment{} }), nil,
			reported{clusterv1.MachineSetMachinesUpToDateCondition, "False", "NotUpToDate", "* Machine a: In-place update"}},
		"going":         {with(scopeOf(1, Machine("a")), goes), refused, reported{gone, "True", "Deleting", "Waiting for the deletion of 1 Machine: a\n" + line + refused.Error()}},
		"going, slowly": {with(scopeOf(1, Machine("slow", slow)), goes), nil, reported{gone, "True", "Deleting", "Waiting for the deletion of 1 Machine: slow" + slowLine}},
		"gone":          {with(scopeOf(1), goes), nil, reported{gone, "True", "Deleting", "All Machines are gone"}},
		"all are well":  {scopeOf(1, Machine("a")), nil, reported{remediating, "False", "NotRemediating", ""}},
		"one is unhealthy, of several": {scopeOf(2, Machine("a"), Machine("b", Unhealthy)), nil,
			reported{remediating, "False", "NotRemediating", "Unhealthy, but their MachineHealthCheck has not requested remediation: b"}},
		"one that waits": {scopeOf(1, Machine("a", Unhealthy, owed)), nil, reported{remediating, "True", "Remediating", "* Machine a: WaitingForRemediation"}},
		"others have the slots": {with(scopeOf(1, Machine("a", Unhealthy, owed)), func(s *scope) { s.elsewhere = []string{"x", "y"} }), nil,
			reported{remediating, "True", "Remediating", "* Machine a: WaitingForRemediation\nIn flight in other MachineSets: x, y"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.scope.setStatus(test.failure)
			found := meta.FindStatusCondition(test.scope.Object.Status.Conditions, test.want.kind)
			g.Expect(found).NotTo(BeNil())
			g.Expect(reported{found.Type, string(found.Status), found.Reason, found.Message}).To(Equal(test.want))
		})
	}
}

// TestNumbersForOlderClients: a Machine counts as fully labelled with all labels of the template; what others wrote stays.
func TestNumbersForOlderClients(t *testing.T) {
	g := NewWithT(t)
	set := validSet()
	s := scopeOf(3, desiredMachine(set, "a"), desiredMachine(set, "b"), Machine("c"))
	s.machines[1].Labels["pool"] = "another"
	s.machines[2].Spec.Version = "v1"
	//nolint:staticcheck // clients of v1beta1 read them
	converted := clusterv1.Conditions{{Type: "Ready", Status: "True"}}
	s.Object.Status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{
		V1Beta1: &clusterv1.MachineSetV1Beta1DeprecatedStatus{Conditions: converted}, //nolint:staticcheck // as above
	}
	s.setStatus(nil)
	//nolint:staticcheck // clients of v1beta1 read them
	g.Expect(*s.Object.Status.Deprecated.V1Beta1).To(Equal(clusterv1.MachineSetV1Beta1DeprecatedStatus{
		Conditions: converted, FullyLabeledReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
	}))
	g.Expect(s.Object.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(2)))
}

// TestNothingIsCountedThatIsNotRead: the numbers that there are stay, and the generation is not reported as observed.
func TestNothingIsCountedThatIsNotRead(t *testing.T) {
	g := NewWithT(t)
	s := scopeOf(3)
	three := int32(3)
	s.machinesRead, s.selector = false, nil
	s.Object.Status.Replicas, s.Object.Status.Selector, s.Object.Status.ObservedGeneration = &three, "a=b", 2
	s.setStatus(nil)
	g.Expect(s.Object.Status.Replicas).To(HaveValue(Equal(three)))
	g.Expect(s.Object.Status.Selector).To(Equal("a=b"))
	g.Expect(s.Object.Status.ObservedGeneration).To(BeEquivalentTo(2))
}

// TestPropagateReachesAllThatItShould: a Machine without labels and annotations too, and nothing is remembered that is not there.
func TestPropagateReachesAllThatItShould(t *testing.T) {
	g := NewWithT(t)
	ten := int32(10)
	set := validSet(func(s *clusterv1.MachineSet) {
		s.Spec.Template.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", "tier": "one"}
		s.Spec.Template.Annotations = map[string]string{"note": "one"}
		s.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Up"}}
		s.Spec.Template.Spec.MinReadySeconds = &ten
		s.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: "a", Effect: "NoSchedule", Propagation: "Always"}}
	})
	m := &clusterv1.Machine{}
	propagate(m, set)
	g.Expect(m.Labels).To(HaveKeyWithValue("tier", "one"))
	g.Expect(m.Annotations).To(Equal(map[string]string{"note": "one", PropagatedAnnotation: `{"labels":["tier"],"annotations":["note"]}`}))
	g.Expect(m.Spec.ReadinessGates).To(Equal(set.Spec.Template.Spec.ReadinessGates))
	g.Expect(m.Spec.MinReadySeconds).To(HaveValue(Equal(ten)))
	g.Expect(m.Spec.Taints).To(Equal(set.Spec.Template.Spec.Taints))

	set.Spec.Template.Labels, set.Spec.Template.Annotations = map[string]string{clusterv1.ClusterNameLabel: "c"}, nil
	propagate(m, set)
	g.Expect(m.Labels).NotTo(HaveKey("tier"))
	g.Expect(m.Annotations).To(BeEmpty(), "most Machines need no such annotation")

	m.Labels["mine"], m.Annotations[PropagatedAnnotation] = "kept", `{"labels":["mine"],"annotations":7}`
	propagate(m, set)
	g.Expect(m.Labels).To(HaveKey("mine"), "what cannot be read was not written by the set")
}
