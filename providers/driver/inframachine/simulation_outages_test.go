package inframachine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// inBothClouds simulates a scripted life in the example cloud and in one like EC2.
func inBothClouds(t *testing.T, life func(*WithT, *simWorld)) {
	t.Helper()
	for name, prepare := range map[string]func(*simWorld){"names": func(*simWorld) {}, "tokens": (*simWorld).useTokens} {
		t.Run(name, func(t *testing.T) {
			scripted(t, func(g *WithT, w *simWorld) {
				prepare(w)
				life(g, w)
			})
		})
	}
}

// callsSince returns a function that counts the calls to the cloud, from now on.
func (w *simWorld) callsSince() func(prefix string) int {
	before := w.Counts()
	return func(prefix string) (n int) {
		for what, count := range w.Counts() {
			if strings.HasPrefix(what, prefix) {
				n += count - before[what]
			}
		}
		return n
	}
}

func (w *simWorld) message(kind string) string {
	if c := meta.FindStatusCondition(w.Server().Machine(simName).Status.Conditions, kind); c != nil {
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
	return ""
}

// becomesReady awaits the machine without any action.
func (w *simWorld) becomesReady(g *WithT, within time.Duration) {
	for end := time.Now().Add(within); time.Now().Before(end) && w.reason() != driverv1.InstanceRunningReason; {
		time.Sleep(time.Second)
	}
	g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
}

// TestThrottledForFiveMinutes: a launch and a machine that runs meanwhile cost a few calls, conditions report it, and no action is needed.
func TestThrottledForFiveMinutes(t *testing.T) {
	inBothClouds(t, func(g *WithT, w *simWorld) {
		calls := w.callsSince()
		w.cloud.Throttle(simAccount, 5*time.Minute)
		w.Start(w.Server())
		time.Sleep(time.Minute)
		g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("False Throttled: "))
		time.Sleep(4*time.Minute - time.Second)
		g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("False Throttled: "))
		g.Expect(calls("cloud ")).To(BeNumerically("<=", 20))
		w.becomesReady(g, 3*time.Minute)
		g.Expect(w.seen.launches).To(Equal(1))
		w.remove()
	})
}

// TestCredentialsExpiredForAnHour: a launch waits and reports why; a machine that runs stays Ready, and reports that it may be out of date.
func TestCredentialsExpiredForAnHour(t *testing.T) {
	for name, runs := range map[string]bool{"before the launch": false, "while it runs": true} {
		t.Run(name, func(t *testing.T) {
			inBothClouds(t, func(g *WithT, w *simWorld) {
				if runs {
					w.Start(w.Server())
					w.becomesReady(g, 5*time.Minute)
				}
				w.cloud.ExpireToken(simAccount, simToken, 0)
				calls := w.callsSince()
				if !runs {
					w.Start(w.Server())
				}
				time.Sleep(time.Hour)
				if runs {
					g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("True InstanceRunning"), "or all machines would be replaced")
					g.Expect(w.message(driverv1.CloudReachableCondition)).To(HavePrefix("False Unauthorized: "))
				} else {
					g.Expect(w.message(driverv1.ReadyCondition)).
						To(And(HavePrefix("False Unauthorized: "), ContainSubstring("check the permissions of identityRef")))
					g.Expect(calls("cloud Create")).To(BeNumerically("<=", 12), "every ten minutes at last")
				}
				g.Expect(calls("cloud ")).To(BeNumerically("<=", 200), "a list each minute or so")
				w.cloud.AddToken(simAccount, simToken)
				w.becomesReady(g, 15*time.Minute)
				time.Sleep(5 * time.Minute)
				if runs {
					g.Expect(w.message(driverv1.CloudReachableCondition)).To(HavePrefix("True "))
				}
				g.Expect(w.seen.launches).To(Equal(1))
				w.remove()
			})
		})
	}
}

// TestGardenerAutoscaler92AZoneThenAllZonesOutOfCapacity: with one zone short the machine goes to another one at once; with all of them
// short it waits, with few launches that fail, and goes where there is room first.
func TestGardenerAutoscaler92AZoneThenAllZonesOutOfCapacity(t *testing.T) {
	inBothClouds(t, func(g *WithT, w *simWorld) {
		w.change(func(obj *examplev1.ExampleMachine) {
			obj.Spec.Zones, obj.Spec.FallbackMachineTypes = []string{"a", "b"}, nil
		})
		w.cloud.Exhaust("a")
		w.Start(w.Server())
		w.becomesReady(g, 2*time.Minute)
		g.Expect(w.Server().Machine(simName).Status.FailureDomain).To(Equal("b"))
		w.remove()
	})
	inBothClouds(t, func(g *WithT, w *simWorld) {
		w.change(func(obj *examplev1.ExampleMachine) {
			obj.Spec.Zones, obj.Spec.FallbackMachineTypes = []string{"a", "b"}, nil
		})
		w.cloud.Exhaust()
		calls := w.callsSince()
		w.Start(w.Server())
		time.Sleep(time.Hour)
		g.Expect(w.message(driverv1.ReadyCondition)).To(And(HavePrefix("False InsufficientCapacity: "), ContainSubstring(" in ")))
		g.Expect(calls("cloud Create")).To(BeNumerically("<=", 35), "every three minutes at last")
		g.Expect(w.Server().Machine(simName).Status.FailureReason).To(BeNil())
		w.cloud.Restore()
		w.becomesReady(g, 5*time.Minute)
		g.Expect(w.seen.launches).To(BeNumerically("<=", 35))
		w.remove()
	})
}

// TestTwoReplicasDuringALeaderChangeMakeOneMachine: the old leader stalls in its launch, its call arrives late, and it continues for a
// while beside the new leader, which launches as well.
func TestTwoReplicasDuringALeaderChangeMakeOneMachine(t *testing.T) {
	for seed := range uint64(8) {
		inBothClouds(t, func(g *WithT, w *simWorld) {
			w.Random = simulation.NewRandom(seed)
			stalled := false
			w.Chaos.SetScript(func(call string) string {
				if call == "Create machines" && !stalled {
					stalled = true
					return "late"
				}
				return ""
			})
			old := w.Start(w.Server())
			time.Sleep(time.Second)
			w.Start(w.Server())
			w.After(time.Duration(seed)*10*time.Second, func() { old.Stop("has lost its lease") })
			w.await("the machine is ready", w.settled)
			time.Sleep(2 * time.Minute) // The late call has arrived.
			g.Expect(stalled).To(BeTrue())
			g.Expect(w.cloud.Machines(simAccount, mark())).To(HaveLen(1))
			g.Expect(w.seen.launches).To(Equal(1))
			w.remove()
		})
	}
}
