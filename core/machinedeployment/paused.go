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
	total := 0
	for i := range d.sets {
		total += d.sets[i].desired
	}
	highest := d.replicas
	if d.replicas > 0 {
		highest += d.maxSurge
	}
	active := d.active()
	if len(active) <= 1 {
		highest = d.replicas
	}
	if len(active) == 0 {
		// All sets are empty: the one that would get Machines next gets them.
		if set := d.current(); set != nil {
			active = []*setView{set}
		} else if len(d.sets) > 0 {
			active = []*setView{&d.sets[len(d.sets)-1]}
		}
	}
	if goal := min(max(total, d.replicas), highest); goal != total && len(active) > 0 {
		d.share(active, goal, total)
	}
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
func (d *draft) share(sets []*setView, goal, total int) {
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
		d.resize(parts[i].set, parts[i].whole, fmt.Sprintf("%d replicas are wanted; the rollout is paused", d.replicas))
	}
}
