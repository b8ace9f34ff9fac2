package machinedeployment

import "fmt"

// onDelete lets the user decide when an outdated Machine goes: the outdated sets follow what was deleted and
// never replace it, and the current set fills up what is missing.
func (d *draft) onDelete() {
	for _, set := range d.outdated() {
		if left := len(set.order) - set.deleting; set.settled && left < set.desired {
			d.resize(set, left, "outdated Machines that were deleted are not replaced")
		}
	}
	minimum := max(d.replicas-d.maxUnavailable, 0)
	d.takeMissing(d.replicas)
	d.takeChosen(minimum, append(d.outdated(), d.current())...)
	if !d.unknown {
		d.takeUnavailable(d.replicas)
		d.shrinkTo(d.replicas)
	}
	current := d.current()
	if limit := d.roomFor(current, 0); limit > current.desired && !current.shrinking() {
		d.resize(current, limit, fmt.Sprintf("%d replicas are desired", d.replicas))
	}
}

// shrinkTo takes Machines until the numbers add up to n: from the outdated sets first, the oldest before the
// others.
func (d *draft) shrinkTo(n int) {
	surplus := d.surplus(n)
	sets := append(d.outdated(), d.current())
	for _, set := range sets {
		if set == nil || surplus <= 0 {
			continue
		}
		take := min(surplus, set.desired)
		surplus -= take
		d.resize(set, set.desired-take, fmt.Sprintf("%d replicas are desired", n))
	}
}
