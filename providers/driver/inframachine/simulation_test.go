package inframachine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/test/clouds/example/cloud"
)

// Environment of the simulation: how many lives are simulated, and the only seed to simulate.
const (
	simRunsVariable = "SIMULATION_RUNS"
	simSeedVariable = "SEED"
	simDefaultRuns  = 50
)

// TestSimulation: whatever goes wrong, in whatever order, the kit keeps its promises, see simSeen, and gets the machine to where it
// belongs once nothing goes wrong any more. Each seed is another life. SEED=n repeats one.
func TestSimulation(t *testing.T) { simulate(t, newSimWorld) }

// TestSimulationWithTokens is the same in a cloud like EC2, see simTokenDriver.
func TestSimulationWithTokens(t *testing.T) { simulate(t, newSimTokenWorld) }

func simulate(t *testing.T, newWorld func(seed uint64) *simWorld) {
	first, runs := uint64(1), number(simRunsVariable, simDefaultRuns)
	if seed := number(simSeedVariable, 0); seed > 0 {
		first, runs = uint64(seed), number(simRunsVariable, 1)
	}
	began, total := time.Now(), map[string]int{}
	failures := 0
	for seed := first; seed < first+uint64(runs); seed++ {
		var w *simWorld
		synctest.Test(t, func(*testing.T) {
			w = newWorld(seed)
			w.live()
			w.seen.ended = time.Now()
			w.Finish()
		})
		w.sum(total)
		if w.Violation() != "" || runs == 1 {
			t.Logf("seed %d: %s\n%s", seed, w.Violation(), strings.Join(w.History(), "\n"))
		}
		if w.Violation() != "" {
			t.Errorf("seed %d: %s. Repeat it by %s=%d, -run %s", seed, w.Violation(), simSeedVariable, seed, t.Name())
			if failures++; failures == 5 {
				break
			}
		}
	}
	if runs > simDefaultRuns {
		report(total, time.Since(began))
	}
}

func number(variable string, byDefault int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return byDefault
}

// sum adds what has happened in this life.
func (w *simWorld) sum(total map[string]int) {
	total["runs"]++
	total["launches"] += w.seen.launches
	total["simulated minutes"] += int(w.seen.ended.Sub(w.Began()).Minutes())
	total["end: "+w.seen.outcome]++
	for kind, n := range w.Faults() {
		total["fault: "+kind] += n
	}
	for what, n := range w.Counts() {
		total["count: "+what] += n
	}
}

// report prints what has happened in all lives.
func report(total map[string]int, took time.Duration) {
	for _, what := range slices.Sorted(maps.Keys(total)) {
		fmt.Printf("%9d  %s\n", total[what], what)
	}
	fmt.Printf("took %s\n", took.Round(time.Second))
}

// live simulates the life.
func (w *simWorld) live() {
	w.Chaos.SetOn(false)
	w.populate()
	w.Start(w.Server())
	w.Chaos.SetOn(true)
	d := w.Random.Draw("life")
	w.disturb(d, minutes(d, 0.5, 15))
	if w.calm(); !w.settle(d) {
		return
	}
	if w.locked().released {
		w.seen.outcome = "deleted while it was disturbed"
		w.checkNothingLeft()
		return
	}
	w.Server().Delete(simulation.MachineID(simName))
	if d.IntN(2) == 0 {
		w.Chaos.SetOn(true)
		w.disturb(d, minutes(d, 0.2, 5))
		w.calm()
	}
	if w.await("the object is gone", func() string { return w.gone() }) {
		w.checkNothingLeft()
	}
}

// disturb lets things go wrong for a while.
func (w *simWorld) disturb(d *rand.Rand, during time.Duration) {
	weights := 0
	for _, e := range simEvents {
		weights += e.weight
	}
	for range d.IntN(8) {
		x := d.IntN(weights)
		i := slices.IndexFunc(simEvents, func(e simEvent) bool { x -= e.weight; return x < 0 })
		random := rand.New(rand.NewPCG(d.Uint64(), d.Uint64()))
		at := d.Int64N(int64(during))
		if d.IntN(3) == 0 {
			at = d.Int64N(int64(min(during, 20*time.Second))) // Most happens in the beginning.
		}
		w.After(time.Duration(at), func() {
			if !w.Chaos.On() {
				return
			}
			w.Log("EVENT: %s", simEvents[i].name)
			w.Fault("event: " + simEvents[i].name)
			simEvents[i].do(w, random)
		})
	}
	for end := time.Now().Add(during); time.Now().Before(end) && w.Violation() == ""; w.tick() {
		time.Sleep(min(5*time.Second, time.Until(end)))
	}
}

// settle waits until the object is where it belongs, and checks that nothing but lists is called from then on.
func (w *simWorld) settle(d *rand.Rand) bool {
	if !w.await("the machine is ready, has failed or is gone", w.settled) {
		return false
	}
	w.Log("settled: %s", w.seen.outcome)
	if d.IntN(4) > 0 || w.locked().released {
		return true
	}
	time.Sleep(5 * time.Minute)
	before := w.Counts()
	time.Sleep(10 * time.Minute)
	w.tick()
	for what, n := range w.Counts() {
		if n -= before[what]; n > 0 && w.unexpected(what, n) {
			w.Violate("%d times %q in ten minutes in which nothing happens", n, what)
		}
	}
	return w.Violation() == ""
}

// unexpected returns whether so much is too much for ten minutes of a machine that runs.
func (w *simWorld) unexpected(what string, n int) bool {
	switch what {
	case "reconcile":
		return n > 5*w.Living() && w.seen.outcome == "ready"
	case "cloud List machines", "cloud List operations":
		return n > 9*w.Living() && (w.seen.outcome == "ready" || n > 40*w.Living())
	case "cloud List power":
		return n > 11*w.Living()
	}
	return w.seen.outcome == "ready" && len(w.locked().caused) == 0
}

// simBound is within what time everything has to settle once nothing goes wrong any more: the longest launch, and the longest wait
// between two tries.
const simBound = 50 * time.Minute

func (w *simWorld) await(what string, unmet func() string) bool {
	why := ""
	for end := time.Now().Add(simBound); time.Now().Before(end) && w.Violation() == ""; w.tick() {
		if why = unmet(); why == "" {
			return true
		}
		time.Sleep(5 * time.Second)
	}
	if w.Violation() == "" {
		w.Violate("it is awaited for %s that %s: %s", simBound, what, why)
	}
	return false
}

// gone returns why the object is not gone, or "".
func (w *simWorld) gone() string {
	obj := w.Server().Machine(simName)
	if obj == nil {
		return ""
	}
	if w.caused("forged") && time.Since(w.locked().deleted) > time.Minute*40 {
		return "" // It may be stuck permanently, because of its owner.
	}
	return fmt.Sprintf("%+v", meta.FindStatusCondition(obj.Status.Conditions, driverv1.ReadyCondition))
}

// settled returns why the object is not where it belongs, or "".
func (w *simWorld) settled() string {
	obj := w.Server().Machine(simName)
	machine, _ := w.Server().Get(simulation.MachineID(simName)).(*clusterv1.Machine)
	switch {
	case obj == nil:
		w.Lock()
		w.seen.released = true
		w.Unlock()
		return ""
	case machine == nil || !machine.DeletionTimestamp.IsZero():
		return w.gone()
	case obj.Status.HasFailed():
		w.seen.outcome = "failed: " + *obj.Status.FailureReason
		return w.disproof(*obj.Status.FailureReason)
	}
	ready := meta.FindStatusCondition(obj.Status.Conditions, driverv1.ReadyCondition)
	if ready == nil {
		return "there is no condition"
	}
	if ready.Reason == driverv1.InstanceRunningReason {
		if w.seen.outcome = "ready"; w.runs() {
			return ""
		}
		return "it is Ready and does not run"
	}
	w.seen.outcome = "stuck: " + ready.Reason
	taken := slices.Equal(obj.Spec.Zones, []string{w.locked().taken}) // With another zone it goes there.
	stuck := w.caused("forged") || taken && ready.Reason == driverv1.ForeignInstanceReason ||
		w.caused("stopped") && ready.Reason == driverv1.InstanceStoppedReason
	if stuck && time.Since(w.locked().disturbed) > 30*time.Minute {
		return ""
	}
	return fmt.Sprintf("%+v", ready)
}

// disproof returns why it is not true that the machine has failed for that reason, or "".
func (w *simWorld) disproof(reason string) string {
	machines := w.cloud.Machines(simAccount, mark())
	switch {
	case w.caused("forged"), w.caused(reason):
		return ""
	case reason == driverv1.InstanceLaunchTimeoutReason && w.caused(driverv1.InstanceVanishedReason): // before it was seen
		return ""
	case reason == driverv1.InstanceLaunchTimeoutReason &&
		(w.caused("stopped") || w.caused("slow") || len(machines) > 0 && machines[0].State != cloud.StateRunning):
		return ""
	}
	w.Violate("the machine is reported as failed permanently, which is wrong: %s", reason)
	return "it has failed"
}

// checkNothingLeft: nothing in the cloud carries the mark once the object is gone and no call is under way.
func (w *simWorld) checkNothingLeft() {
	time.Sleep(2 * time.Minute)
	excused := w.caused("forged") || w.caused("unheld")
	if left := w.cloud.Resources(simAccount, mark()); len(left) > 0 && !excused && w.Server().Machine(simName) == nil {
		w.Violate("the object is gone, and %v is left in the cloud", left)
	}
}

// locked returns what was seen, as it is at present.
func (w *simWorld) locked() simSeen {
	w.Lock()
	defer w.Unlock()
	return w.seen
}
