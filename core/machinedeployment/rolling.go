package machinedeployment

import "fmt"

// rollingUpdate lets the current set grow into the room that there is, and takes from the others what can be
// spared.
func (d *draft) rollingUpdate() {
	minimum := max(d.replicas-d.maxUnavailable, 0)
	d.takeBack()
	d.takeChosen(minimum, d.current())
	d.growCurrent()
	d.takeChosen(minimum, d.outdated()...)
	if d.unknown {
		return
	}
	d.shrinkOutdated(minimum)
	d.removeBehindChosen(minimum)
}

// takeBack withdraws orders for Machines that are not created yet, as far as these would be too many: they were given before
// the number of replicas was lowered.
func (d *draft) takeBack() {
	excess := -(d.replicas + d.maxSurge)
	for i := range d.sets {
		excess += max(d.sets[i].desired, len(d.sets[i].order))
	}
	for _, set := range append(d.outdated(), d.current()) {
		if unmade := min(set.desired-len(set.order), excess); unmade > 0 {
			d.resize(set, set.desired-unmade, fmt.Sprintf("%d Machines may exist, and more do", d.replicas+d.maxSurge))
			excess -= unmade
		}
	}
}

// growCurrent brings the current set to the number of replicas, as far as the surge allows.
func (d *draft) growCurrent() {
	current := d.current()
	if current.desired > d.replicas {
		d.resize(current, d.replicas, fmt.Sprintf("%d replicas are desired", d.replicas))
		return
	}
	if limit := min(d.replicas, d.roomFor(current, d.maxSurge)); limit > current.desired && !current.shrinking() {
		d.resize(current, limit, fmt.Sprintf(
			"%d replicas are desired, and up to %d Machines may exist", d.replicas, d.replicas+d.maxSurge))
	}
}

// roomFor is how many Machines a set may have beside those of the others. Machines count until they are gone.
func (d *draft) roomFor(set *setView, surge int) int {
	return d.replicas + surge - (d.total() - set.existing())
}

// shrinkOutdated takes Machines from the outdated sets, the oldest set first: those first whose loss leaves as
// many available as before, then available ones down to the minimum. Together with what is available of the
// current set there must be enough left even if what is unavailable now recovers: so an outage that makes all
// Machines look unavailable does not delete them all.
func (d *draft) shrinkOutdated(minimum int) {
	spare := d.recoverable() - minimum
	for _, set := range d.outdated() {
		to := set.desired
		for ; spare > 0 && to > 0 && set.availableAt(to-1) == set.available(); to-- {
			spare--
		}
		d.resize(set, to, "outdated Machines that are not available are deleted first")
	}
	budget := d.availableTotal() - minimum
	for _, set := range d.outdated() {
		to := set.desired
		for ; spare > 0 && to > 0; to-- {
			cost := set.availableAt(to) - set.availableAt(to-1)
			if cost > budget {
				break
			}
			budget -= cost
			spare--
		}
		d.resize(set, to, fmt.Sprintf("%d Machines must be available, and more are", minimum))
	}
}

// recreateAll removes all outdated Machines at once, and creates new ones when the last of them is gone.
func (d *draft) recreateAll() {
	present := 0
	for _, set := range d.outdated() {
		if d.unknown {
			present += set.existing()
			continue
		}
		d.resize(set, 0, "all outdated Machines are deleted before new ones are created")
		present += set.existing()
	}
	current := d.current()
	switch {
	case present == 0 || current.desired > d.replicas:
		d.resize(current, d.replicas, fmt.Sprintf("%d replicas are desired", d.replicas))
	default:
		// It keeps the Machines that it has, but gets no more.
	}
}
