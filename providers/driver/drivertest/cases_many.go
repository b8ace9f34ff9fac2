package drivertest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
)

// fleet is how many machines "many machines" has.
const fleet = 25

// manyMachines: each of those that are created at once, and deleted at once, costs one launch and one deletion, or a share of one, and a
// share of the rest; while they run they cost no more than one does.
func manyMachines[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		l.Workers, l.others = 10, fleet
		l.Options.Concurrency = l.Workers
		l.Start(l.Server())
		calls := l.calls()
		for n := range fleet {
			l.AddMachine(l.cloud.Object(memberName(n), ObjectOptions{AllDomains: true}))
		}
		l.await(bound, "all machines are ready", func() bool { return l.members(driverv1.InstanceRunningReason) == fleet })
		l.Expect(l.machines()).To(HaveLen(fleet))
		time.Sleep(5 * time.Minute)
		l.runsForNothing(30*time.Minute, 150)
		for n := range fleet {
			l.Server().Delete(simulation.MachineID(memberName(n)))
		}
		l.await(bound, "all machines are gone", func() bool { return len(l.left()) == 0 && l.members("") == 0 })
		l.Expect(calls(l.cloud.Launches)).To(Equal(fleet))
		l.Expect(calls(l.cloud.Ends)).To(BeNumerically("<=", fleet))
	})
}

func memberName(n int) string { return fmt.Sprintf("node-2%02d", n) }

// members counts the objects beside the one that most cases are about whose Ready has a reason; all if it is empty.
func (l *life[M]) members(reason string) (count int) {
	for n := range l.others {
		if l.Server().Get(l.ObjectID(memberName(n))) == nil {
			continue
		}
		for _, c := range l.Server().Machine(memberName(n)).CommonStatus().Conditions {
			if c.Type == driverv1.ReadyCondition && c.Reason == reason || reason == "" {
				count++
				break
			}
		}
	}
	return count
}

// randomLives is how many "mixed faults" simulates.
const randomLives = 15

// mixedFaults: whatever goes wrong, in whatever order, there is one machine at most, the machine gets to where it belongs once nothing
// goes wrong any more, and nothing is left. Each seed is another life.
func mixedFaults[M driver.Object](t *testing.T, p Provider[M]) {
	for seed := range uint64(randomLives) {
		live(t, p, seed+1, func(l *life[M]) {
			l.disturbed(l.Random.Draw("life"))
			l.calm()
			l.settles()
			if !l.gone() {
				l.remove()
			}
			l.removed()
		})
	}
}

// disturbed is a life in which things go wrong for a while, of which each life has others.
func (l *life[M]) disturbed(d *rand.Rand) {
	launch := l.Chaos.Launch
	l.Chaos = simulation.NewChaos(d)
	l.Chaos.Launch = launch
	l.Workers = simulation.One(d, 1, 4)
	l.Options.Concurrency = l.Workers
	l.Chaos.SetOn(false)
	l.begin(ObjectOptions{AllDomains: d.IntN(2) == 0, AllTypes: d.IntN(2) == 0, Spot: d.IntN(3) == 0})
	l.Chaos.SetOn(true)
	during := time.Duration(30+d.IntN(900)) * time.Second
	happens := mishaps[M]()
	for range d.IntN(7) {
		m, random := happens[d.IntN(len(happens))], rand.New(rand.NewPCG(d.Uint64(), 1))
		l.After(time.Duration(d.Int64N(int64(during))), func() {
			if l.Chaos.On() {
				l.Log("EVENT: %s", m.name)
				m.do(l, random)
			}
		})
	}
	time.Sleep(during)
}

// calm ends all that goes wrong.
func (l *life[M]) calm() {
	l.Log("nothing goes wrong any more")
	l.Chaos.SetOn(false)
	l.Server().Pause(false)
	l.cloud.Calm()
	l.EnsureProcess(l.Server())
}

// mishaps are what may go wrong beside requests and calls. None waits.
func mishaps[M driver.Object]() []event[M] {
	of := func(do func(*life[M]) func(Resource)) func(*life[M], *rand.Rand) {
		return func(l *life[M], _ *rand.Rand) {
			for _, m := range l.machines() {
				if f := do(l); f != nil && m.Running {
					f(m)
				}
			}
		}
	}
	return []event[M]{
		{"a domain is exhausted", func(l *life[M], d *rand.Rand) {
			if l.cloud.Exhaust != nil {
				l.cloud.Exhaust(simulation.One(d, l.cloud.Domains[0], l.cloud.Domains[1], ""), "")
			}
		}},
		{"launches fail late", func(l *life[M], d *rand.Rand) {
			if l.cloud.FailLate != nil {
				l.cloud.FailLate(1 + d.IntN(2))
			}
		}},
		{"all is throttled", func(l *life[M], _ *rand.Rand) { l.cloud.Refuse("", driver.ClassThrottle) }},
		{"no quota", func(l *life[M], _ *rand.Rand) { l.cloud.Refuse(l.cloud.Launches, driver.ClassQuota) }},
		{"nothing can be deleted", func(l *life[M], _ *rand.Rand) { l.cloud.Refuse(l.cloud.Ends, driver.ClassRefused) }},
		{"the credentials expire", func(l *life[M], _ *rand.Rand) {
			if l.cloud.Expire != nil {
				l.cloud.Expire()
			}
		}},
		{"the cloud is calm again", func(l *life[M], _ *rand.Rand) { l.cloud.Calm() }},
		{"the machine vanishes", of(func(l *life[M]) func(Resource) { return l.cloud.Vanish })},
		{"another process takes over", func(l *life[M], d *rand.Rand) { l.TakeOver(d) }},
		{"the Cluster is paused", func(l *life[M], _ *rand.Rand) {
			l.Server().Pause(true)
			l.After(2*time.Minute, func() { l.Server().Pause(false) })
		}},
		{"the Machine is deleted", func(l *life[M], _ *rand.Rand) { l.Server().Delete(machineID) }},
		{"the object is touched", func(l *life[M], _ *rand.Rand) {
			l.Server().Change(l.ObjectID(name), func(obj client.Object) {
				obj.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": simulation.ClusterName, "touched": "yes"})
			})
		}},
	}
}
