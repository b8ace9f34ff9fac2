package machines

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// rank is how readily a Machine is given up: lower ranks go first.
type rank int

// PriorityAnnotation is how the machine-controller-manager marks which Machines are deleted first: those with the lowest
// number. A Machine without it, or where it is no number, has DefaultPriority.
const PriorityAnnotation = "machinepriority.machine.sapcloud.io"

// DefaultPriority is that of the machine-controller-manager.
const DefaultPriority = 3

// The ranks, in the order in which Machines go. They are those of Cluster API (the deletePriority functions of its
// MachineSet controller), and one more: a Machine that serves already is worth more than one that does not yet. The
// priority comes between rankChosen and the others.
const (
	// rankDeleting is for Machines that go already: they make room for free.
	rankDeleting rank = iota
	// rankChosen is for Machines with the annotation cluster.x-k8s.io/delete-machine.
	rankChosen
	// rankUpdating is for Machines that are being updated in place: what is not finished yet is given up first.
	rankUpdating
	// rankUnhealthy is for Machines without a Node, or with an unhealthy one.
	rankUnhealthy
	// rankUnavailable is for Machines that are not available yet, or not any more.
	rankUnavailable
	rankAvailable
)

// rankOf is the rank of a Machine.
func rankOf(machine *clusterv1.Machine) rank {
	_, chosen := machine.Annotations[clusterv1.DeleteMachineAnnotation]
	switch {
	case !machine.DeletionTimestamp.IsZero():
		return rankDeleting
	case chosen:
		return rankChosen
	case Updating(machine):
		return rankUpdating
	case Unobserved(machine):
		// It existed before, and may serve.
		return rankAvailable
	case unhealthy(machine):
		return rankUnhealthy
	case !meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition):
		return rankUnavailable
	default:
		return rankAvailable
	}
}

// SameMarks reports whether two versions of a Machine have the same annotations that choose which Machines go first.
func SameMarks(a, b *clusterv1.Machine) bool {
	for _, mark := range []string{clusterv1.DeleteMachineAnnotation, PriorityAnnotation, clusterv1.UpdateInProgressAnnotation} {
		was, chosen := a.Annotations[mark]
		is, choose := b.Annotations[mark]
		if chosen != choose || was != is {
			return false
		}
	}
	return true
}

// priorityOf reads PriorityAnnotation.
func priorityOf(machine *clusterv1.Machine) int {
	if priority, err := strconv.Atoi(machine.Annotations[PriorityAnnotation]); err == nil {
		return priority
	}
	return DefaultPriority
}

// ByDeletion returns the Machines in the order in which they are to go: those that go already and those that a user
// has chosen; then by priority, by rank, by the policy, and by name, so that the order is the same each time. Random is
// by name too: the names are random.
func ByDeletion(machines []*clusterv1.Machine, policy clusterv1.MachineSetDeletionOrder) []*clusterv1.Machine {
	return slices.SortedFunc(slices.Values(machines), func(a, b *clusterv1.Machine) int {
		return cmp.Or(
			cmp.Compare(min(rankOf(a), rankUpdating), min(rankOf(b), rankUpdating)),
			cmp.Compare(priorityOf(a), priorityOf(b)),
			cmp.Compare(rankOf(a), rankOf(b)),
			byAge(policy, a.CreationTimestamp, b.CreationTimestamp),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

func byAge(policy clusterv1.MachineSetDeletionOrder, a, b metav1.Time) int {
	switch policy {
	case clusterv1.OldestMachineSetDeletionOrder:
		return a.Compare(b.Time)
	case clusterv1.NewestMachineSetDeletionOrder:
		return b.Compare(a.Time)
	default:
		return 0
	}
}
