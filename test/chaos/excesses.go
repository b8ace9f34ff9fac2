package chaos

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// window is for how long after a change what was wanted before still counts, whatever the core says it has acted on: a
// request of a process that was killed may arrive late.
const window = 20 * time.Second

// books is the state while a history is replayed.
type books struct {
	// machines are the Machines that exist, deleting ones included, with their set.
	machines map[types.UID]types.UID
	// surplus is since when there are Machines that the run has created.
	surplus map[types.UID]time.Time
	// deployments are the deployments of sets.
	deployments map[types.UID]types.UID
	owners      map[types.UID]*owner
}

// owner is what is known of a set or of a deployment.
type owner struct {
	name   string
	limits []limit
	// observed are the generations that the core has reported as acted on.
	observed []observation
}

// limit is how many Machines there may be, for as long as nothing else was wanted.
type limit struct {
	value   int
	version uint64
	// until is when it was replaced by the next one, replaced the generation that did it.
	until    time.Time
	replaced int64
}

type observation struct {
	version    uint64
	generation int64
}

// excesses replays the history and reports each Machine that was created beyond the limits.
//
// What counts is not what was wanted at that moment: while writes fail or a process is down, the core may not know yet.
// A set may act on any of its numbers from the one on that it has last reported as acted on; and that number came from
// a deployment which acted on any of its own, in the same way, when it wrote it. Machines that the run has created itself are no excess
// when they come, and count against others once the core must know of them.
func (h *history) excesses() []string {
	b := &books{
		machines: map[types.UID]types.UID{}, surplus: map[types.UID]time.Time{}, deployments: map[types.UID]types.UID{},
		owners: map[types.UID]*owner{},
	}
	var found []string
	for _, m := range h.inOrder() {
		if m.kind != "Machine" {
			b.enter(m)
			continue
		}
		if m.gone {
			delete(b.machines, m.uid)
			continue
		}
		before, known := b.machines[m.uid]
		b.machines[m.uid] = m.owner
		if m.surplus {
			if !known {
				b.surplus[m.uid] = m.at
			}
			continue
		}
		if known && before == m.owner || m.owner == "" {
			continue
		}
		found = append(found, b.check(m)...)
	}
	return found
}

// enter records the limit of a set or a deployment from now on, and what it has acted on.
func (b *books) enter(m moment) {
	o := b.owners[m.uid]
	if o == nil {
		o = &owner{name: m.kind + " " + m.name}
		b.owners[m.uid] = o
	}
	if m.kind == "MachineSet" && m.owner != "" {
		b.deployments[m.uid] = m.owner
	}
	o.observed = append(o.observed, observation{m.version, m.observed})
	if last := len(o.limits) - 1; last >= 0 {
		if o.limits[last].value == m.limit {
			return
		}
		o.limits[last].until, o.limits[last].replaced = m.at, m.generation
	}
	o.limits = append(o.limits, limit{value: m.limit, version: m.version})
}

// check counts the Machines of the set, and of its deployment, to which one has come.
func (b *books) check(m moment) []string {
	set := b.owners[m.owner]
	if set == nil {
		return nil
	}
	allowed, since := set.allowed(m, m.version)
	found := b.count(m, m.owner, allowed)
	if deployment := b.owners[b.deployments[m.owner]]; deployment != nil {
		allowed, _ := deployment.allowed(m, since)
		found = append(found, b.count(m, b.deployments[m.owner], allowed)...)
	}
	return found
}

func (b *books) count(m moment, owner types.UID, allowed int) []string {
	count := 0
	for uid, set := range b.machines {
		if since, surplus := b.surplus[uid]; surplus && m.at.Sub(since) < window {
			continue
		}
		if set == owner || b.deployments[set] == owner {
			count++
		}
	}
	if count <= allowed {
		return nil
	}
	return []string{fmt.Sprintf("%s: Machine %s came as number %d of at most %d", b.owners[owner].name, m.name, count, allowed)}
}

// allowed is the highest of the limits that the core may have acted on when the Machine came, going by what it had reported
// at a version; and the version at which the first of them was written.
func (o *owner) allowed(m moment, version uint64) (highest int, since uint64) {
	observed := int64(0)
	for _, reported := range o.observed {
		if reported.version <= version {
			observed = max(observed, reported.generation)
		}
	}
	since = version
	for _, l := range o.limits {
		if l.until.IsZero() || l.replaced > observed || m.at.Sub(l.until) < window {
			highest, since = max(highest, l.value), min(since, l.version)
		}
	}
	return highest, since
}
