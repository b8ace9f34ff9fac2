package remediation

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// Recorded has the names of the Machines whose replacement a MachineSet has recorded.
func Recorded(set *clusterv1.MachineSet) map[string]bool {
	names := map[string]bool{}
	for _, record := range RecordsOf(set.Annotations) {
		names[record.Machine] = true
	}
	return names
}

// Due are the Machines of a set that are to be replaced, in the order in which they shall have their turn: those whose replacement has
// begun, so that an interrupted one is not exchanged for another; those with the annotation cluster.x-k8s.io/remediate-machine; then the
// newest first, since a Machine that never came up has no load.
func Due(set *clusterv1.MachineSet, all []*clusterv1.Machine) []*clusterv1.Machine {
	recorded := Recorded(set)
	begun := func(machine *clusterv1.Machine) bool { return recorded[machine.Name] || Begun(machine) }
	unhealthy := slices.DeleteFunc(machines.Remediated(all), func(machine *clusterv1.Machine) bool {
		return !machine.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(unhealthy, func(a, b *clusterv1.Machine) int {
		return cmp.Or(
			first(begun(a), begun(b)),
			first(marked(a), marked(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return unhealthy
}

// first sorts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func marked(machine *clusterv1.Machine) bool {
	_, ok := machine.Annotations[clusterv1.RemediateMachineAnnotation]
	return ok
}

// Demanded reports whether a person asks for the replacement of this Machine of a set; in the template it would be asked for for ever.
func Demanded(set *clusterv1.MachineSet, machine *clusterv1.Machine) bool {
	_, always := set.Spec.Template.Annotations[clusterv1.RemediateMachineAnnotation]
	return marked(machine) && !always
}

// Candidates describes unhealthy Machines of a set to Decide. elsewhere means that another set makes up for them.
func Candidates(set *clusterv1.MachineSet, unhealthy []*clusterv1.Machine, elsewhere bool, now time.Time) []Candidate {
	recorded := Recorded(set)
	var candidates []Candidate
	for _, machine := range unhealthy {
		candidate := Candidate{
			Name: machine.Name, Begun: recorded[machine.Name] || Begun(machine), Demanded: Demanded(set, machine), Elsewhere: elsewhere,
			Replaces: RecordOf(machine), FailedAt: now,
		}
		if found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition); found != nil {
			candidate.FailedAt, candidate.Reason, candidate.Message = found.LastTransitionTime.Time, found.Reason, found.Message
		}
		candidates = append(candidates, candidate)
	}
	return candidates
}
