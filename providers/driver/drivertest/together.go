package drivertest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"millwright.dev/providers/driver/drivertest/simulation"
)

// Participant is a Provider of any kind.
type Participant interface {
	participate(t *testing.T, seed uint64, machines int) participant
}

// participant is a life of some machines in one cloud.
type participant interface {
	// disturb lets things go wrong for a while.
	disturb()
	// conclude ends that, and deletes what there still is.
	conclude()
	// end ends the life.
	end()
	// report is what was wrong, with the history; empty if nothing was.
	report() string
}

// Together runs the providers of several clouds at the same time, each with some machines, while things go wrong in all of them:
// requests, calls, processes, capacity, credentials, machines. In the end nothing was created twice, and nothing is left in any cloud. Each
// seed is another life.
func Together(t *testing.T, seed uint64, machines int, providers ...Participant) {
	t.Helper()
	var all []participant
	synctest.Test(t, func(t *testing.T) {
		for i, p := range providers {
			all = append(all, p.participate(t, seed*1000+uint64(i), machines))
		}
		each := func(do func(participant)) {
			var wait sync.WaitGroup
			for _, p := range all {
				wait.Go(func() { do(p) })
			}
			wait.Wait()
		}
		each(participant.disturb)
		each(participant.conclude)
		each(participant.end)
	})
	for _, p := range all {
		if wrong := p.report(); wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
	}
}

func (p Provider[M]) participate(t *testing.T, seed uint64, machines int) participant {
	l := open(t, p, seed)
	l.others = machines - 1
	return l
}

func (l *life[M]) disturb() {
	d := l.Random.Draw("life")
	for n := range l.others {
		at := rand.New(rand.NewPCG(d.Uint64(), 1))
		l.AddMachine(l.cloud.Object(memberName(n), ObjectOptions{AllDomains: at.IntN(2) == 0, AllTypes: at.IntN(2) == 0, Spot: at.IntN(3) == 0}))
	}
	l.disturbed(d)
}

func (l *life[M]) conclude() {
	l.calm()
	l.settles()
	for n := range l.others {
		l.Server().Delete(simulation.MachineID(memberName(n)))
	}
	l.Server().Delete(machineID)
	l.await(bound, "all objects are gone", func() bool { return l.gone() && l.members("") == 0 })
	l.removed()
}

func (l *life[M]) report() string {
	if violation := l.Violation(); violation != "" {
		return l.Kind.Name + ": " + violation + "\n" + strings.Join(l.History(), "\n")
	}
	return ""
}
