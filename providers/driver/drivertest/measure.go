package drivertest

import (
	"strings"
	"testing"
	"time"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
)

// Figures are what machines cost in calls to their cloud, by the names of the calls.
type Figures struct {
	// Created is from the creation of the first object until all machines run, Idle half an hour of machines that run, Deleted from the
	// first deletion until all objects are gone.
	Created, Idle, Deleted map[string]int
}

// All are the calls of a name in all phases.
func (f Figures) All(name string) int { return f.Created[name] + f.Idle[name] + f.Deleted[name] }

// Sum is how many calls of a phase have names that the function selects.
func Sum(calls map[string]int, selects func(name string) bool) (n int) {
	for name, count := range calls {
		if selects(name) {
			n += count
		}
	}
	return n
}

// Measure creates machines at once, has them run for half an hour, and deletes them at once. It counts the calls.
func Measure[M driver.Object](t *testing.T, p Provider[M], machines int) (figures Figures) {
	t.Helper()
	live(t, p, 1, func(l *life[M]) {
		l.Workers, l.others = 40, machines
		l.Options.Concurrency = l.Workers
		l.Start(l.Server())
		phase := func(do func()) map[string]int {
			before := l.Counts()
			do()
			made := map[string]int{}
			for what, n := range l.Counts() {
				if name, ok := strings.CutPrefix(what, "cloud "); ok && n > before[what] {
					made[name] = n - before[what]
				}
			}
			return made
		}
		figures.Created = phase(func() {
			for n := range machines {
				l.AddMachine(l.cloud.Object(memberName(n), ObjectOptions{AllDomains: true}))
			}
			l.await(bound, "all machines are ready", func() bool { return l.members(driverv1.InstanceRunningReason) == machines })
		})
		time.Sleep(5 * time.Minute)
		figures.Idle = phase(func() { time.Sleep(30 * time.Minute) })
		figures.Deleted = phase(func() {
			for n := range machines {
				l.Server().Delete(simulation.MachineID(memberName(n)))
			}
			l.await(bound, "all machines are gone", func() bool { return l.members("") == 0 && len(l.left()) == 0 })
		})
	})
	return figures
}
