package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestAwaitedIsNamed: the report has what is waited for, and nothing else.
func TestAwaitedIsNamed(t *testing.T) {
	down := conditions.False(clusterv1.MachineAvailableCondition, "NotAvailable", "too young")
	machines := func(m ...*clusterv1.Machine) []*clusterv1.Machine { return m }
	desired := func(outdated, current int32) func(*scope) {
		return func(s *scope) { s.sets[0].Spec.Replicas, s.sets[1].Spec.Replicas = ptr.To(outdated), ptr.To(current) }
	}
	blocked := func(s *scope) {
		s.current.Status.Conditions = []metav1.Condition{
			conditions.True(clusterv1.MachineSetScalingUpCondition, "ScalingUpBlocked", "the template is missing"),
		}
	}
	for name, test := range map[string]struct {
		scope *scope
		want  string
	}{
		"nothing": {rollout(servingAll(1), servingAll(2)), ""},
		"a Machine of the current set": {
			rollout(nil, append(servingAll(2), member("m", 0, down))),
			"\n* Machine m: Available is False: too young",
		},
		"one of an outdated set is not": {rollout(machines(member("m", 0, down)), servingAll(2)), ""},
		"the end of an outdated one": {
			rollout(machines(going5m(member("m", time.Hour))), servingAll(2)),
			"\n* Machine m: being deleted",
		},
		"no set is current": {rollout(nil, machines(member("m", 0, down)), func(s *scope) { s.current = nil }),
			""},
		"a set with too few": {
			rollout(nil, servingAll(2), desired(0, 3)),
			"\n* MachineSet fresh: 2 Machines exist, 3 are desired",
		},
		"a set with too many": {
			rollout(servingAll(2), servingAll(2), desired(1, 2)),
			"\n* MachineSet old: 2 Machines exist, 1 are desired",
		},
		"a set with too many that are going": {
			rollout(machines(going5m(member("m", time.Hour))), nil, desired(0, 0)),
			"\n* Machine m: being deleted",
		},
		"a set that is blocked says why": {
			rollout(nil, servingAll(2), desired(0, 3), blocked),
			"\n* MachineSet fresh: the template is missing",
		},
		"another one is blocked, not this": {
			rollout(servingAll(1), servingAll(2), desired(2, 3), blocked),
			"\n* MachineSet fresh: the template is missing\n* MachineSet old: 1 Machines exist, 2 are desired",
		},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(waitedFor(test.scope)).To(Equal(test.want)) })
	}
}

// TestAwaitedStages: a Machine waits for the first stage that it has not got through.
func TestAwaitedStages(t *testing.T) {
	bootstrapped := conditions.True(clusterv1.MachineBootstrapConfigReadyCondition, "Ready", "")
	noNode := conditions.Unknown(clusterv1.MachineNodeReadyCondition, "NodeDoesNotExist", "")
	down := conditions.False(clusterv1.MachineAvailableCondition, "NotAvailable", "too young")
	draining := conditions.True(clusterv1.MachineDeletingCondition, "Draining", "pod p stays")
	notDeleting := conditions.False(clusterv1.MachineDeletingCondition, "NotDeleting", "")
	for name, test := range map[string]struct {
		machine *clusterv1.Machine
		want    string
	}{
		"nothing is reported":         {member("m", 0), "no conditions are reported yet"},
		"the first that is not True":  {member("m", 0, down, noNode, bootstrapped), "NodeReady is Unknown: NodeDoesNotExist"},
		"all that is reported is":     {member("m", 0, bootstrapped), "no conditions are reported yet"},
		"it goes, and says how":       {going5m(member("m", 0, down, draining)), "Deleting is True: pod p stays"},
		"it goes, and says otherwise": {going5m(member("m", 0, down, notDeleting)), "being deleted"},
		"it goes":                     {going5m(member("m", 0, down)), "being deleted"},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(awaits(test.machine).Message).To(Equal(test.want)) })
	}
}
