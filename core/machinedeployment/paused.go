package machinedeployment

import (
	"cmp"
	"fmt"
	"slices"
)

// scaleProportionally keeps the number of Machines while nothing rolls. When a rollout was stopped half-way,
// several sets have Machines: each grows and shrinks by its share, so that the mixture stays what it was. The
// surge that the rollout had reached is left as it is.
func (d *draft) scaleProportionally() {
	minimum := max(d.replicas-d.maxUnavailable, 0)
	highest := d.replicas
	if d.replicas > 0 && len(d.active()) > 1 {
		highest += d.maxSurge
	}
	d.takeMissing(highest)
	d.takeChosen(minimum, append(d.outdated(), d.current())...)
	total := d.surplus(0)
	switch goal := min(max(total, d.replicas), highest); {
	case goal < total && d.unknown:
		// Which Machines serve is known in a moment.
	case goal < total:
		if enough := min(d.availableTotal(), minimum); d.shared(goal).availableTotal() < enough {
			// An equal share would cost more than those that are of no use anyway.
			d.takeUnavailable(goal)
		}
		d.share(goal)
	default:
		limit := max(d.total(), highest)
		for d.growShares(goal, limit) {
		}
	}
}

// growShares lets the sets grow towards the goal as far as there is room: Machines count until they are gone. It
// reports whether that was anything; what is left may still fit when it is shared again.
func (d *draft) growShares(goal, limit int) bool {
	for ; goal > d.surplus(0) && len(d.sets) > 0; goal-- {
		if d.shared(goal).total() <= limit {
			d.share(goal)
			return true
		}
	}
	return false
}

// shared is a draft of what share would do.
func (d *draft) shared(goal int) *draft {
	trial := &draft{view: d.view, before: d.before, reasons: map[string]string{}}
	trial.sets = slices.Clone(d.sets)
	trial.share(goal)
	return trial
}

// sharing are the sets that are to have Machines. When all are empty it is the one that would get Machines next.
func (d *draft) sharing() []*setView {
	if sets := d.active(); len(sets) > 0 {
		return sets
	}
	if set := d.current(); set != nil {
		return []*setView{set}
	}
	if len(d.sets) > 0 {
		return []*setView{&d.sets[len(d.sets)-1]}
	}
	return nil
}

// active are the sets that are to have Machines.
func (d *draft) active() []*setView {
	var sets []*setView
	for i := range d.sets {
		if d.sets[i].desired > 0 {
			sets = append(sets, &d.sets[i])
		}
	}
	return sets
}

// share gives each set its part of the goal: the whole number below first, then one more to those that have
// lost most by it, larger sets before smaller ones.
func (d *draft) share(goal int) {
	total, sets := d.surplus(0), d.sharing()
	if goal == total {
		return
	}
	type part struct {
		set       *setView
		whole     int
		remainder int
	}
	parts := make([]part, len(sets))
	left := goal
	for i, set := range sets {
		weight, of := set.desired, total
		if total == 0 {
			weight, of = 1, len(sets)
		}
		parts[i] = part{set: set, whole: goal * weight / of, remainder: goal * weight % of}
		left -= parts[i].whole
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.remainder, a.remainder), cmp.Compare(b.set.desired, a.set.desired))
	})
	for i := range parts {
		if i < left {
			parts[i].whole++
		}
		d.resize(parts[i].set, parts[i].whole, fmt.Sprintf("%d replicas are desired; the rollout is paused", d.replicas))
	}
}
