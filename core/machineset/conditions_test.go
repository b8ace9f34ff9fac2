package machineset

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	. "millwright.dev/test/coretest/builder"
)

// begin returns the scope of a reconcile that has done nothing yet.
func begin(set *clusterv1.MachineSet) *scope {
	return (&Reconciler{Clock: clocktesting.NewFakeClock(Epoch)}).newScope(set)
}

// scopeOf is a scope in which all went well.
func scopeOf(replicas int, machines ...*clusterv1.Machine) *scope {
	s := begin(validSet())
	s.replicas, s.machines, s.machinesRead = replicas, machines, true
	s.selector, s.cluster = labels.SelectorFromSet(labels.Set{"pool": "a"}), &clusterv1.Cluster{}
	return s
}

func notReady(why string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		SetConditions(m, conditions.False(clusterv1.MachineReadyCondition, "NotReady", why))
	}
}

func TestConditions(t *testing.T) {
	up, down := clusterv1.MachineSetScalingUpCondition, clusterv1.MachineSetScalingDownCondition
	tests := map[string]struct {
		scope           *scope
		failure         error
		kind            string
		status          metav1.ConditionStatus
		reason, message string
	}{
		"as many as there shall be":      {scope: scopeOf(1, Machine("a")), kind: up, status: "False", reason: "NotScalingUp"},
		"too few":                        {scope: scopeOf(3, Machine("a")), kind: up, status: "True", reason: "ScalingUp", message: "Scaling up from 1 to 3 replicas"},
		"too few, and it failed":         {scope: scopeOf(3), failure: errors.New("quota"), kind: up, status: "True", reason: "ScalingUp", message: "failed and is repeated: quota"},
		"too few, a template is missing": {scope: with(scopeOf(3), func(s *scope) { s.block("no t"); s.block("no t") }), kind: up, status: "True", reason: machines.BlockedReason, message: "from 0 to 3 replicas is blocked:\n* no t"},
		"enough, a template is missing":  {scope: with(scopeOf(0), func(s *scope) { s.block("no t") }), kind: up, status: "False", reason: "NotScalingUp", message: "would be blocked:\n* no t"},
		"the spec is wrong":              {scope: with(scopeOf(3), func(s *scope) { s.specErrors = []string{"spec.x"} }), kind: up, status: "True", reason: machines.InvalidSpecReason, message: "* spec.x"},
		"creation is disabled": {scope: with(scopeOf(3), func(s *scope) {
			s.Object.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}
		}), kind: up, status: "False", reason: "NotScalingUp", message: "3 Machines missing, and creation is disabled"},
		"nothing is known":                   {scope: with(scopeOf(3), func(s *scope) { s.machinesRead = false }), failure: errors.New("no answer"), kind: up, status: "Unknown", reason: "InternalError", message: "no answer"},
		"too many":                           {scope: scopeOf(1, Machine("a"), Machine("b", Deleting)), kind: down, status: "True", reason: "ScalingDown", message: "from 2 to 1 replicas; being deleted: b"},
		"not too many":                       {scope: scopeOf(1, Machine("a")), kind: down, status: "False", reason: "NotScalingDown"},
		"all are ready":                      {scope: scopeOf(1, Machine("a")), kind: clusterv1.MachineSetMachinesReadyCondition, status: "True", reason: "Ready"},
		"there are none":                     {scope: scopeOf(1), kind: clusterv1.MachineSetMachinesReadyCondition, status: "True", reason: "NoReplicas"},
		"one has reported nothing":           {scope: scopeOf(1, Machine("a", func(m *clusterv1.Machine) { m.Status.Conditions = nil })), kind: clusterv1.MachineSetMachinesReadyCondition, status: "Unknown", reason: "ReadyUnknown", message: "* Machine a: Ready is not reported yet"},
		"two say the same":                   {scope: scopeOf(3, Machine("b", notReady("x")), Machine("a", notReady("x")), Machine("c", notReady("* y\n* z"))), kind: clusterv1.MachineSetMachinesReadyCondition, status: "False", reason: "NotReady", message: "* Machines a, b: x\n* Machine c:\n  * y\n  * z"},
		"all are up to date":                 {scope: scopeOf(1, Machine("a")), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "True", reason: "UpToDate"},
		"outdated by deployment":             {scope: with(scopeOf(1, Machine("a")), func(s *scope) { s.outdated = []string{"version v1, v2 required"} }), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "False", reason: "NotUpToDate", message: "Machine a: version v1, v2 required"},
		"outdated by itself":                 {scope: with(scopeOf(1, Machine("a")), func(s *scope) { s.Object.Spec.Template.Spec.Version = "v2" }), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "False", reason: "NotUpToDate", message: "version (none), v2 required"},
		"standalone, not reported by itself": {scope: scopeOf(1, Machine("a")), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "True", reason: "UpToDate"},
		"updated in place": {scope: scopeOf(1, Machine("a", func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
		})), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "False", reason: "NotUpToDate", message: "In-place update in progress"},
		"kubelet behind": {scope: scopeOf(1, Machine("a", func(m *clusterv1.Machine) {
			SetConditions(m, conditions.False(clusterv1.MachineUpToDateCondition, clusterv1.MachineUpToDateUpdatingReason, "In-place update"))
		})), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "False", reason: "NotUpToDate", message: "In-place update"},
		"standalone, reported by a tool": {scope: scopeOf(1, Machine("a", func(m *clusterv1.Machine) {
			SetConditions(m, conditions.False(clusterv1.MachineUpToDateCondition, "OldImage", "image of May"))
		})), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "False", reason: "NotUpToDate", message: "image of May"},
		"reported before a rollback": {scope: with(scopeOf(1, Machine("a", func(m *clusterv1.Machine) {
			SetConditions(m, conditions.False(clusterv1.MachineUpToDateCondition, clusterv1.MachineNotUpToDateReason, "version v1"))
		})), func(s *scope) { s.deployment = &clusterv1.MachineDeployment{} }), kind: clusterv1.MachineSetMachinesUpToDateCondition,
			status: "True", reason: "UpToDate"},
		"v or no v": {scope: with(scopeOf(1, Machine("a", func(m *clusterv1.Machine) { m.Spec.Version = "v1.36.3" })), func(s *scope) {
			s.Object.Spec.Template.Spec.Version = "1.36.3"
		}), kind: clusterv1.MachineSetMachinesUpToDateCondition, status: "True", reason: "UpToDate"},
		"none is remediated":      {scope: scopeOf(1, Machine("a", Unhealthy)), kind: clusterv1.MachineSetRemediatingCondition, status: "False", reason: "NotRemediating", message: "their MachineHealthCheck has not requested remediation: a"},
		"one is to be remediated": {scope: scopeOf(1, Machine("a", Unhealthy, owed)), kind: clusterv1.MachineSetRemediatingCondition, status: "True", reason: "Remediating", message: "* Machine a: WaitingForRemediation"},
		"it is there to stay":     {scope: scopeOf(1), kind: clusterv1.MachineSetDeletingCondition, status: "False", reason: "NotDeleting"},
		"it goes":                 {scope: with(scopeOf(1, Machine("a")), goes), kind: clusterv1.MachineSetDeletingCondition, status: "True", reason: "Deleting", message: "Waiting for the deletion of 1 Machine: a"},
		"it goes, and scales":     {scope: with(scopeOf(1, Machine("a")), goes), kind: down, status: "True", reason: "ScalingDown", message: "from 1 to 0"},
		"not paused":              {scope: scopeOf(1), kind: clusterv1.PausedCondition, status: "False", reason: "NotPaused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.scope.setStatus(test.failure)
			got := meta.FindStatusCondition(test.scope.Object.Status.Conditions, test.kind)
			g.Expect(got).NotTo(BeNil())
			g.Expect(got.Status).To(Equal(test.status))
			g.Expect(got.Reason).To(Equal(test.reason))
			g.Expect(got.ObservedGeneration).To(BeEquivalentTo(3))
			if test.message == "" {
				g.Expect(got.Message).To(BeEmpty())
			}
			g.Expect(got.Message).To(ContainSubstring(test.message))
		})
	}
}

func with(s *scope, change func(*scope)) *scope {
	change(s)
	return s
}

func owed(m *clusterv1.Machine) {
	SetConditions(m, conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", ""))
}

func goes(s *scope) { s.Original.DeletionTimestamp = &metav1.Time{Time: Epoch} }

func TestCounts(t *testing.T) {
	g := NewWithT(t)
	versioned := func(m *clusterv1.Machine) { m.Status.NodeInfo = nodeInfo("v1.36.3") }
	s := scopeOf(4, Machine("a", versioned), Machine("b", Unavailable, versioned), Machine("c", notReady("x"), Unavailable),
		Machine("d", Deleting))
	s.setStatus(nil)
	status := s.Object.Status
	g.Expect(status.Replicas).To(HaveValue(BeEquivalentTo(4)), "one that is being deleted counts until it is gone")
	g.Expect(status.ReadyReplicas).To(HaveValue(BeEquivalentTo(2)), "one that is being deleted serves no more soon")
	g.Expect(status.AvailableReplicas).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(4)))
	g.Expect(status.Versions).To(ConsistOf(clusterv1.StatusVersion{Version: "v1.36.3", Replicas: 2}))
	g.Expect(status.Selector).To(Equal("pool=a"))
	g.Expect(status.ObservedGeneration).To(BeEquivalentTo(3))
	deprecated := status.Deprecated.V1Beta1
	g.Expect(deprecated.FullyLabeledReplicas).To(BeZero(), "they lack the set's name") //nolint:staticcheck // Clients of v1beta1 read them.

	before := s.Object.DeepCopy()
	s.Now = Epoch.Add(1)
	s.setStatus(nil)
	g.Expect(s.Object).To(Equal(before), "the same state gives the same status")
}

func TestPausedLeavesTheRestAlone(t *testing.T) {
	g := NewWithT(t)
	s := scopeOf(4)
	s.paused = []string{"spec.paused of Cluster c is true"}
	s.setStatus(nil)
	g.Expect(s.Object.Status.Conditions).
		To(ConsistOf(And(HaveField("Type", "Paused"), HaveField("Message", "spec.paused of Cluster c is true"))))
	g.Expect(s.Object.Status.ObservedGeneration).To(BeZero())
	g.Expect(s.Object.Status.Replicas).To(BeNil())
}

func TestMachineChanged(t *testing.T) {
	tests := map[string]struct {
		change func(*clusterv1.Machine)
		want   bool
	}{
		"only the version":           {func(m *clusterv1.Machine) { m.ResourceVersion = "2" }, false},
		"addresses":                  {func(m *clusterv1.Machine) { m.Status.Addresses = clusterv1.MachineAddresses{{Address: "a"}} }, false},
		"the phase":                  {func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		"a condition of no interest": {func(m *clusterv1.Machine) { SetConditions(m, conditions.True("Other", "X", "")) }, false},
		"when a condition was seen":  {func(m *clusterv1.Machine) { m.Status.Conditions[0].ObservedGeneration = 9 }, false},
		"readiness":                  {notReady("x"), true},
		"availability":               {Unavailable, true},
		"deletion":                   {Deleting, true},
		"the Node":                   {Nodeless, true},
		"the request to delete it":   {Chosen, true},
		"labels":                     {func(m *clusterv1.Machine) { m.Labels = nil }, true},
		"owners":                     {func(m *clusterv1.Machine) { m.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }, true},
		"the spec":                   {func(m *clusterv1.Machine) { m.Generation = 7 }, true},
		"the version of the kubelet": {func(m *clusterv1.Machine) { m.Status.NodeInfo = nodeInfo("v1") }, true},
		"health":                     {Unhealthy, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(machineChanged(Machine("a"), Machine("a", test.change))).To(Equal(test.want))
		})
	}
}

func nodeInfo(kubelet string) *corev1.NodeSystemInfo {
	return &corev1.NodeSystemInfo{KubeletVersion: kubelet}
}

// TestSlowDeletions are named from their deadline on, with what each waits for.
func TestSlowDeletions(t *testing.T) {
	g := NewWithT(t)
	since := func(d time.Duration, reason string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			m.DeletionTimestamp = &metav1.Time{Time: Epoch.Add(-d)}
			if reason != "" {
				SetConditions(m, conditions.True(clusterv1.MachineDeletingCondition, reason, ""))
			}
		}
	}
	s := scopeOf(0, Machine("a", since(16*time.Minute, clusterv1.MachineDeletingDrainingNodeReason)), Machine("b", since(14*time.Minute, "")),
		Machine("c", since(machines.SlowDeletion, "")), Machine("d", since(12*time.Minute, "")))
	g.Expect(scalingDownCondition(s, nil).Message).To(HaveSuffix(
		"\nBeing deleted for more than 15 minutes:\n* Machine a: DrainingNode\n* Machine c: being deleted"))
	goes(s)
	g.Expect(deletingCondition(s, nil).Message).To(ContainSubstring("Machine a: DrainingNode"))
	g.Expect((&Reconciler{}).requeueAfterSlowDeletion(t.Context(), s).After()).To(Equal(time.Minute))
}
