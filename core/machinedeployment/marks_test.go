package machinedeployment

import "testing"

// TestMarksStopNoRollout rolls out over each mixture of outdated Machines that are marked, and that will never serve, with
// each of some limits. Marks are no excuse: at each step as many serve as the limits ask for, or as did before; and all
// outdated ones go.
func TestMarksStopNoRollout(t *testing.T) {
	const most = 4
	for limits := 1; limits < 9; limits++ {
		for replicas := 1; replicas <= most; replicas++ {
			for mixture := range 1 << (2 * replicas) {
				marks, broken := mixture&(1<<replicas-1), mixture>>replicas
				rolloutOverMarks(t, replicas, limits%3, limits/3, marks, broken)
			}
		}
	}
}

// rolloutOverMarks takes the Machines that are marked, and broken ones, as bits.
func rolloutOverMarks(t *testing.T, replicas, surge, unavailable, marks, broken int) {
	t.Helper()
	s := newSimulation(uint64(marks<<8 | broken))
	s.trace.Reset()
	s.setStrategy(2)
	s.replicas, s.maxSurge, s.maxUnavailable, s.blind = replicas, surge, unavailable, false
	s.note("%d replicas, surge %d, unavailable %d, marks %b, broken %b", replicas, surge, unavailable, marks, broken)
	s.settle(t)
	for n, machine := range s.sets[0].machines {
		machine.chosen = marks>>n&1 == 1
		machine.doomed = broken>>n&1 == 1
		machine.available = !machine.doomed
	}
	s.template = 1
	s.happened("user: another template")
	least := min(s.count().available, replicas-unavailable)
	for round := range 40 * (replicas + 3) {
		s.step(t, round)
		if s.converged() {
			return
		}
		// What serves at a moment is not below what must, once every set has acted.
		serve := s.count().available
		if serve < least {
			t.Fatalf("%d Machines serve, %d must\n%s", serve, least, s.trace.String())
		}
		least = max(least, min(serve, replicas-unavailable))
	}
	t.Fatalf("the rollout does not end\n%s", s.trace.String())
}
