package machinedeployment

import "fmt"

// takeChosen removes Machines that a user or a cluster autoscaler has chosen with the annotation
// cluster.x-k8s.io/delete-machine, while there are more Machines than wanted: from whichever of the sets they
// belong to, so that these are deleted and no others. What exceeds even the surge is deleted at once, since
// replicas were lowered; of the rest, which may be the surge of a rollout, as many available Machines as
// the minimum asks for are left, also if what is not available now recovers.
func (d *draft) takeChosen(minimum int, sets ...*setView) {
	d.takeChosenDownTo(d.replicas+d.maxSurge, 0, sets)
	d.takeChosenDownTo(d.replicas, minimum, sets)
}

func (d *draft) takeChosenDownTo(wanted, minimum int, sets []*setView) {
	surplus := d.surplus(wanted)
	for _, set := range sets {
		if set == nil {
			continue
		}
		to := set.desired
		for left := set.chosenLeft(); surplus > 0 && left > 0; left-- {
			cost := set.availableAt(to) - set.availableAt(to-1)
			used := d.costOf(set, to-1)
			if cost > 0 && d.availableTotal()-used < minimum {
				break
			}
			if !set.current && d.recoverable()-(set.desired-to+1) < minimum {
				break
			}
			to--
			surplus--
		}
		d.resize(set, to, fmt.Sprintf("%d replicas are desired, and these Machines were chosen for deletion", d.replicas))
	}
}

// recoverable is how many Machines would be available if all outdated ones recovered.
func (d *draft) recoverable() int {
	sum := 0
	for i := range d.sets {
		if d.sets[i].current {
			sum += d.sets[i].available()
		} else {
			sum += d.sets[i].desired
		}
	}
	return sum
}

// removeBehindChosen removes outdated Machines that do not serve and would go next, were it not for chosen ones before
// them that serve and must not go yet: a set with a smaller number would take those. So a mark neither costs a
// Machine that is needed, nor stops a rollout.
func (d *draft) removeBehindChosen(minimum int) {
	spare := d.recoverable() - minimum
	for _, set := range d.outdated() {
		positions := set.behindChosen()
		positions = positions[:min(len(positions), max(spare, 0))]
		if len(positions) == 0 {
			continue
		}
		spare -= len(positions)
		d.resize(set, set.desired-len(positions), "outdated Machines that are not available are replaced first; "+
			"others that were chosen for deletion are still needed")
		d.removed[set.name] = positions
	}
}

// behindChosen are the positions, in the order, of Machines that do not serve and that only chosen ones are before which
// do. A set that has not observed its smaller number yet has none: it would take them for those.
func (s *setView) behindChosen() []int {
	if s.reserve > s.desired || len(s.order)-s.deleting > s.desired {
		return nil
	}
	var positions []int
	passed := false
	for at := s.deleting; at < len(s.order); at++ {
		switch marked := at < s.deleting+s.chosen; {
		case !s.order[at] && passed:
			positions = append(positions, at)
		case !marked || !s.order[at]:
			return positions
		default:
			passed = true
		}
	}
	return positions
}

// takeMissing gives up Machines that do not exist yet, or that would replace ones which are being deleted, while
// there are more than wanted: nothing has to go for it.
func (d *draft) takeMissing(wanted int) {
	surplus := d.surplus(wanted)
	for _, set := range append(d.outdated(), d.current()) {
		if set == nil || surplus <= 0 {
			continue
		}
		take := min(surplus, max(0, set.desired-(len(set.order)-set.deleting)))
		surplus -= take
		d.resize(set, set.desired-take, fmt.Sprintf("%d replicas are desired, and fewer have to be created", d.replicas))
	}
}

// takeUnavailable removes Machines that are not available, while there are more than wanted; outdated ones first.
func (d *draft) takeUnavailable(wanted int) {
	surplus := d.surplus(wanted)
	for _, set := range append(d.outdated(), d.current()) {
		if set == nil {
			continue
		}
		to := set.desired
		for ; surplus > 0 && to > 0 && set.availableAt(to-1) == set.available(); to-- {
			surplus--
		}
		d.resize(set, to, fmt.Sprintf("%d replicas are desired, and Machines that are not available are deleted first", d.replicas))
	}
}

// surplus is how many more Machines the sets are to have than are wanted.
func (d *draft) surplus(wanted int) int {
	surplus := -wanted
	for i := range d.sets {
		surplus += d.sets[i].desired
	}
	return surplus
}

// costOf is how many available Machines are lost if a set that is to have what it desires has n instead.
func (d *draft) costOf(set *setView, n int) int { return set.available() - set.availableAt(n) }

// chosenLeft is how many chosen Machines the set keeps with the number that it has: those which it gives up
// anyway do not count, nor those of a set that has not all of its Machines, since a smaller number would only
// keep it from making others.
func (s *setView) chosenLeft() int {
	alive := len(s.order) - s.deleting
	if alive < s.desired {
		return 0
	}
	return max(0, s.chosen-(alive-s.desired))
}
