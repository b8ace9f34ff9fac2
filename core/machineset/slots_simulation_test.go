package machineset

import (
	"fmt"
	"math/rand/v2"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	. "millwright.dev/test/coretest/builder"
)

// TestSlotsSimulation lets several sets of a deployment remediate at once, each with a cache that is behind by a
// random number of steps, writes that fail, and restarts: never are more Machines on their way out than the limit, and
// all are done in the end. A failure names its seed.
func TestSlotsSimulation(t *testing.T) {
	for seed := range uint64(2000) {
		if problem := simulateTickets(seed); problem != "" {
			t.Fatalf("seed %d: %s", seed, problem)
		}
	}
}

func simulateTickets(seed uint64) string {
	dice := rand.New(rand.NewPCG(seed, 1)) // a simulation
	limit, sets := 1+dice.IntN(3), 1+dice.IntN(3)
	// real is what the API server has, cached what every set sees; they are replaced, not changed.
	real, cached := map[string]*clusterv1.Machine{}, map[string]*clusterv1.Machine{}
	owner := map[string]int{}
	for i := range 3 + dice.IntN(8) {
		name := fmt.Sprintf("m%d", i)
		real[name], owner[name] = Machine(name, handed), dice.IntN(sets)
		cached[name] = real[name]
	}
	var t remediationSlots
	for range 3000 {
		switch roll := dice.IntN(10); {
		case roll < 4:
			remediateOnce(&t, dice, limit, dice.IntN(sets), owner, real, cached)
		case roll < 6:
			// Some of the cache catches up.
			for name := range owner {
				if dice.IntN(2) == 0 {
					catchUp(name, real, cached)
				}
			}
		case roll < 9:
			for name, m := range real {
				if !m.DeletionTimestamp.IsZero() && dice.IntN(3) == 0 {
					delete(real, name)
				}
			}
		case dice.IntN(20) == 0:
			// A new process begins with a cache that was read a moment ago.
			t = remediationSlots{}
			for name := range owner {
				catchUp(name, real, cached)
			}
		}
		going := 0
		for _, m := range real {
			if !m.DeletionTimestamp.IsZero() {
				going++
			}
		}
		if going > limit {
			return fmt.Sprintf("%d at once, and the limit is %d", going, limit)
		}
		if len(real) == 0 {
			return ""
		}
	}
	return fmt.Sprintf("%d Machines are left", len(real))
}

// remediateOnce is what a set does in one reconcile.
func remediateOnce(t *remediationSlots, dice *rand.Rand, limit, set int, owner map[string]int, real, cached map[string]*clusterv1.Machine) {
	var all, own []*clusterv1.Machine
	for name, m := range cached {
		all = append(all, m)
		if owner[name] == set {
			own = append(own, m)
		}
	}
	granted := t.take("d", limit, all, toRemediate(own), Epoch)
	for _, m := range granted.machines {
		switch {
		case dice.IntN(4) == 0:
			// The announcement fails.
			if granted.fresh[m.UID] {
				t.release("d", m.UID)
			}
		case dice.IntN(4) == 0 || real[m.Name] == nil || real[m.Name] != m && !begun(real[m.Name]):
			// The deletion fails, or has nothing left to delete: the slot stays.
		default:
			gone := Machine(m.Name, remediating, Deleting)
			real[m.Name] = gone
		}
	}
}

func catchUp(name string, real, cached map[string]*clusterv1.Machine) {
	if m, ok := real[name]; ok {
		cached[name] = m
	} else {
		delete(cached, name)
	}
}
