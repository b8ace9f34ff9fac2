package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	contract "millwright.dev/contracts/inframachine"
)

// decision is what holdTermination decides, in one word.
type decision string

const (
	terminate decision = "terminate"
	// holdForUser waits until a user deletes the Machine, holdForCore until the core has drained its Node, and holdForGrace for a time.
	holdForUser  decision = "hold for a user"
	holdForCore  decision = "hold for the core"
	holdForGrace decision = "hold for a while"
)

func decisionOf(h *hold) decision {
	switch {
	case h == nil:
		return terminate
	case h.needsUser:
		return holdForUser
	case !h.until.IsZero():
		return holdForGrace
	}
	return holdForCore
}

// machineStates are the states that a Machine may be in while its infrastructure object is being deleted.
var machineStates = map[string]*clusterv1.Machine{
	"does not exist":                    nil,
	"exists":                            {},
	"exists, restored without a status": {Spec: clusterv1.MachineSpec{ProviderID: "x:///i"}},
	"exists, with a Node":               {Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "n"}}},
	"says that it is being deleted, and is not": {
		Status: clusterv1.MachineStatus{Conditions: deletingBecause(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)}},
	"deleted, not seen by a core yet":           leaving(""),
	"deleted, seen":                             leaving(clusterv1.MachineDeletingReason),
	"deleted, has a pre-drain hook":             leaving(clusterv1.MachineDeletingWaitingForPreDrainHookReason),
	"deleted, is drained":                       leaving(clusterv1.MachineDeletingDrainingNodeReason),
	"deleted, has volumes":                      leaving(clusterv1.MachineDeletingWaitingForVolumeDetachReason),
	"deleted, has a pre-terminate hook":         leaving(clusterv1.MachineDeletingWaitingForPreTerminateHookReason),
	"deleted, a core meets errors":              leaving(clusterv1.MachineDeletingInternalErrorReason),
	"deleted, its infrastructure is next":       leaving(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason),
	"deleted, its bootstrap config is next":     leaving(clusterv1.MachineDeletingWaitingForBootstrapDeletionReason),
	"deleted, its Node is next":                 leaving(clusterv1.MachineDeletingDeletingNodeReason),
	"deleted, only others' finalizers are left": leaving(clusterv1.MachineDeletingDeletionCompletedReason),
}

func leaving(reason string) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1000, 0)}}}
	if reason != "" {
		machine.Status.Conditions = deletingBecause(reason)
	}
	return machine
}

func deletingBecause(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: reason}}
}

// TestHoldTermination_CAPI10710_EachMachineState: the object is deleted first; the state of the Machine decides.
func TestHoldTermination_CAPI10710_EachMachineState(t *testing.T) {
	want := map[string]decision{
		"does not exist":                            terminate,
		"exists":                                    holdForUser,
		"exists, restored without a status":         holdForUser,
		"exists, with a Node":                       holdForUser,
		"says that it is being deleted, and is not": holdForUser,
		"deleted, not seen by a core yet":           holdForCore,
		"deleted, seen":                             holdForCore,
		"deleted, has a pre-drain hook":             holdForCore,
		"deleted, is drained":                       holdForCore,
		"deleted, has volumes":                      holdForCore,
		"deleted, has a pre-terminate hook":         holdForCore,
		"deleted, a core meets errors":              holdForCore,
		"deleted, its infrastructure is next":       terminate,
		"deleted, its bootstrap config is next":     terminate,
		"deleted, its Node is next":                 terminate,
		"deleted, only others' finalizers are left": terminate,
	}
	for state, machine := range machineStates {
		t.Run(state, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(want).To(HaveKey(state))
			now := time.Unix(1000, 0)
			object := deletedAt(now)
			c := candidate{object: object, providerID: "x:///i"}
			g.Expect(decisionOf(holdTermination(c, machine, now))).To(Equal(want[state]))

			// An instance that no Node can be of, and a deletion that a user forces, do not wait for any Machine.
			g.Expect(holdTermination(candidate{object: object}, machine, now)).To(BeNil(), "no provider ID")
			g.Expect(holdTermination(candidate{object: object, providerID: "x:///i", neverRan: true}, machine, now)).To(BeNil(), "never ran")
			object.Annotations = map[string]string{contract.ForceDeletionAnnotation: "true"}
			g.Expect(holdTermination(c, machine, now)).To(BeNil(), "forced")
			object.Annotations[contract.ForceDeletionAnnotation] = "false"
			g.Expect(decisionOf(holdTermination(c, machine, now))).To(Equal(want[state]), "an annotation that says no")
		})
	}
}

// TestHoldTermination_MachineOfAnExport_IsAwaited: the garbage collector deletes an object whose owner reference is stale before its
// Machine is created again.
func TestHoldTermination_MachineOfAnExport_IsAwaited(t *testing.T) {
	deleted := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		owner string
		after time.Duration
		want  decision
	}{
		"a moment ago, owned":     {"m", time.Second, holdForGrace},
		"a moment ago, not owned": {"", time.Second, terminate},
		"at the end of the grace": {"m", missingMachineGrace, terminate},
		"long ago, owned":         {"m", time.Hour, terminate},
		"by a clock that is fast": {"m", -time.Second, holdForGrace},
	} {
		t.Run(name, func(t *testing.T) {
			c := candidate{object: deletedAt(deleted), providerID: "x:///i", owner: test.owner}
			NewWithT(t).Expect(decisionOf(holdTermination(c, nil, deleted.Add(test.after)))).To(Equal(test.want))
		})
	}
}

func deletedAt(moment time.Time) *testMachine {
	return &testMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", DeletionTimestamp: &metav1.Time{Time: moment}}}
}
