package machinedeployment

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// view is what the planner sees of a deployment: numbers, and no objects.
type view struct {
	// replicas is how many Machines there shall be.
	replicas int
	// maxSurge is how many more may exist at a time, maxUnavailable how many fewer may be available.
	maxSurge, maxUnavailable int
	strategy                 clusterv1.MachineDeploymentRolloutStrategyType
	// paused means that nothing rolls; scaling continues.
	paused bool
	// recreate means that a rolling update removes all outdated Machines before it makes new ones.
	recreate bool
	// unknown means that it is not known yet whether outdated Machines serve: the rollout deletes none.
	unknown bool
	// sets are in the order in which they were created.
	sets []setView
}

// setView is what the planner sees of a MachineSet.
type setView struct {
	name string
	// current means that its Machines are what the deployment wants.
	current bool
	// desired is the number of replicas in its spec.
	desired int
	// order has for each Machine that exists, deleting ones included, whether it is available; in the order
	// in which the MachineSet would delete them.
	order []bool
	// deleting is how many of them are being deleted; they are the first in the order.
	deleting int
	// chosen is how many Machines, next in the order, a user has chosen to go when the deployment shrinks.
	chosen int
	// settled means that the set has counted exactly these Machines.
	settled bool
	// reserve is how many Machines it may still turn out to have, because it has not looked at its last
	// decrease yet.
	reserve int
}

// existing is the number of Machines that the set has, or may have at any moment without being asked again.
func (s *setView) existing() int { return max(s.desired, len(s.order), s.reserve) }

// availableAt is the number of available Machines that are left when the set has shrunk to n.
func (s *setView) availableAt(n int) int {
	left := 0
	for _, available := range s.order[len(s.order)-min(max(n, 0), len(s.order)):] {
		if available {
			left++
		}
	}
	return left
}

// available is the number of available Machines that are left when the set has what it desires.
func (s *setView) available() int { return s.availableAt(s.desired) }

// shrinking reports whether the set got a smaller number and has not observed it yet, or is about to delete chosen
// Machines: a larger number now would take that back.
func (s *setView) shrinking() bool {
	return s.reserve > s.desired || (s.chosen > 0 && len(s.order)-s.deleting > s.desired)
}

// intent is a change of the number of replicas of one set.
type intent struct {
	set      string
	from, to int
	// remove are the positions, in the order of the set's Machines, of those that the deployment deletes itself before
	// it writes the number, since the set would give up others.
	remove []int
	// reason is why, for events and logs.
	reason string
}

// plan is what brings the deployment closer to its spec.
type plan struct {
	// create means that there is no current set and one is needed, with this number of replicas.
	create         bool
	createReplicas int
	createReason   string
	// scale are the sets whose number of replicas changes.
	scale []intent
}

// makePlan decides what to do next. It is a pure function: it holds for any moment, whatever was decided
// before, and it keeps, whatever the sets and Machines do meanwhile,
//
//   - that no more than replicas + maxSurge Machines exist, of those that it had to do with,
//   - that no fewer than replicas − maxUnavailable are available, as far as that is its own doing,
//   - that a plan takes nothing back which the one before has ordered, unless something has happened since,
//   - that Machines which were chosen to go are those that go when there are more than replicas.
func makePlan(v view) plan {
	work := newDraft(v)
	switch {
	case v.paused:
		work.scaleProportionally()
	case v.strategy == clusterv1.OnDeleteMachineDeploymentStrategyType:
		work.onDelete()
	case v.recreate:
		work.recreateAll()
	default:
		work.rollingUpdate()
	}
	return work.plan()
}

// draft is a plan in the making: the sets with their new numbers.
type draft struct {
	view
	// before are the numbers as they are.
	before map[string]int
	// reasons are those of the sets that have changed.
	reasons map[string]string
	// removed are the positions of the Machines of each set that are deleted for its smaller number.
	removed map[string][]int
	// fresh means that the last of the sets is one that has to be created.
	fresh bool
}

// newDraft takes the view; where a current set is missing and needed, an empty one is added.
func newDraft(v view) *draft {
	d := &draft{view: v, before: map[string]int{}, reasons: map[string]string{}, removed: map[string][]int{}}
	d.sets = slices.Clone(v.sets)
	for i := range d.sets {
		d.before[d.sets[i].name] = d.sets[i].desired
	}
	if !v.paused && d.current() == nil {
		d.fresh = true
		d.sets = append(d.sets, setView{current: true})
	}
	return d
}

// current is the set that Machines are to belong to; nil while there is none.
func (d *draft) current() *setView {
	for i := range d.sets {
		if d.sets[i].current {
			return &d.sets[i]
		}
	}
	return nil
}

// outdated are the other sets, the oldest first.
func (d *draft) outdated() []*setView {
	var sets []*setView
	for i := range d.sets {
		if !d.sets[i].current {
			sets = append(sets, &d.sets[i])
		}
	}
	return sets
}

// resize gives a set another number.
func (d *draft) resize(set *setView, to int, reason string) {
	if set.desired == to {
		return
	}
	// Until the set has acted on it, the Machines of the larger number exist or may exist.
	set.reserve = max(set.reserve, set.desired)
	set.desired = to
	d.reasons[set.name] = reason
}

// total is the number of Machines that exist or may at any moment.
func (d *draft) total() int {
	sum := 0
	for i := range d.sets {
		sum += d.sets[i].existing()
	}
	return sum
}

// availableTotal is the number of available Machines that are left when all sets have their new numbers.
func (d *draft) availableTotal() int {
	sum := 0
	for i := range d.sets {
		sum += d.sets[i].available()
	}
	return sum
}

// plan lists the differences.
func (d *draft) plan() plan {
	var result plan
	for i := range d.sets {
		set := &d.sets[i]
		if d.fresh && i == len(d.sets)-1 {
			result.create, result.createReplicas = true, set.desired
			result.createReason = "no MachineSet has the template of the deployment"
			continue
		}
		if from := d.before[set.name]; from != set.desired {
			result.scale = append(result.scale, intent{
				set: set.name, from: from, to: set.desired, remove: d.removed[set.name], reason: d.reasons[set.name],
			})
		}
	}
	return result
}
