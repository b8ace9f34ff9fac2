package remediation

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// Set is what the count of replacements in flight has to know of a MachineSet.
type Set struct {
	// Machines are those that the set controls.
	Machines []*clusterv1.Machine
	// Replicas is how many it shall have.
	Replicas int
	// Records are those of its ReplacingAnnotation.
	Records []Record
	// Outgoing means that a rollout takes its Machines away: the rollout handles those that do not come up, within its bounds.
	Outgoing bool
}

// Flight is what is in flight in the sets of a MachineDeployment, or in one set without a deployment.
type Flight struct {
	// Held has the name of each Machine that takes up a place: those that are being replaced, and replacements that were never
	// available. Of a replacement that does not exist yet it has the name of the Machine that is replaced.
	Held map[string]bool
	// Recorded has those of them of which a record is seen. That one is being deleted is not enough: it goes, and another watch may not
	// have shown the record by then.
	Recorded map[string]bool
	// Owed are the records whose Machines are gone and whose replacements do not exist yet.
	Owed []Record
	// Replaced has the names of the Machines that existing ones replace.
	Replaced map[string]bool
	// Existing has the names of all Machines.
	Existing map[string]bool
	// Settled has the names of the Machines whose records have done their duty and can go.
	Settled map[string]bool
	// Recovered has those that seem to have recovered before they were deleted. Their records keep their places until the API server
	// has been asked: a cache that is behind shows a Machine that has fallen ill again as it was in between.
	Recovered map[string]bool
}

// Leaving reports whether a Machine is being deleted because it was unhealthy.
func Leaving(machine *clusterv1.Machine) bool {
	return !machine.DeletionTimestamp.IsZero() && Begun(machine)
}

// Begun reports whether the owner of a Machine has announced that it replaces it.
func Begun(machine *clusterv1.Machine) bool {
	found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	return found != nil && found.Status == metav1.ConditionFalse &&
		found.Reason == clusterv1.MachineSetMachineRemediationMachineDeletingReason
}

// Coming reports whether a Machine replaces another one, and that it was available is not written down yet. What is seen of its
// conditions does not count: it may be gone again before that is written, and the place be given away meanwhile.
func Coming(machine *clusterv1.Machine) bool {
	record := RecordOf(machine)
	return record != nil && record.Available == nil
}

// InFlight counts what is in flight in the sets of one deployment.
func InFlight(sets []Set) Flight {
	f := Flight{
		Held: map[string]bool{}, Recorded: map[string]bool{}, Replaced: map[string]bool{}, Existing: map[string]bool{},
		Settled: map[string]bool{}, Recovered: map[string]bool{},
	}
	existing := map[string]*clusterv1.Machine{}
	missing := 0
	for _, set := range sets {
		staying := 0
		for _, machine := range set.Machines {
			if machine.DeletionTimestamp.IsZero() {
				staying++
			}
			existing[machine.Name], f.Existing[machine.Name] = machine, true
			if record := RecordOf(machine); record != nil {
				f.Replaced[record.Machine] = true
			}
			if Leaving(machine) || Coming(machine) && machine.DeletionTimestamp.IsZero() && !set.Outgoing {
				f.Held[machine.Name] = true
			}
		}
		// One that has too many makes up for nothing that another one lacks. Those that are being deleted do not count: a cache that is
		// behind may show them when their replacements are there already, and others may go whose replacements are not owed.
		missing += max(0, set.Replicas-staying)
	}
	for _, set := range sets {
		for _, record := range set.Records {
			machine := existing[record.Machine]
			switch {
			case machine != nil && !Recovered(machine):
				f.Held[record.Machine], f.Recorded[record.Machine] = true, true
			case f.Replaced[record.Machine], machine == nil && missing <= len(f.Owed):
				// Its replacement is there, or none is wanted any more.
				f.Settled[record.Machine] = true
			default:
				f.Held[record.Machine], f.Recorded[record.Machine] = true, true
				if machine != nil {
					f.Recovered[record.Machine] = true
					continue
				}
				f.Owed = append(f.Owed, record)
			}
		}
	}
	return f
}

// Recovered reports whether no health check asks for the replacement of a Machine any more, and it is not being deleted.
func Recovered(machine *clusterv1.Machine) bool {
	return machine.DeletionTimestamp.IsZero() &&
		(!machines.FailedHealthCheck(machine) || !machines.OwnerRemediationRequested(machine))
}
