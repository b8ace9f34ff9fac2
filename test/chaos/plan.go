package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// act is a kind of action.
type act string

// What is done to objects, Nodes and instances.
const (
	deleteMachine    act = "delete a Machine"
	preferMachine    act = "mark a Machine for deletion and shrink its set"
	markMachine      act = "label a Machine"
	scaleSet         act = "scale a MachineSet"
	scaleDeployment  act = "scale a MachineDeployment"
	rollOut          act = "change a deployment's infrastructure template"
	wave             act = "change a label in a deployment's template"
	deleteSet        act = "delete a MachineSet of a deployment"
	deleteDeployment act = "delete the doomed MachineDeployment"
	deleteNode       act = "delete a Node"
	vanish           act = "let an instance vanish"
	removeByForce    act = "remove a Machine and its infrastructure machine by force"
	deleteInfra      act = "delete an infrastructure machine"
	fallSilent       act = "let a kubelet fall silent"
	spoilNode        act = "set a condition of a Node that says it is broken"
	failToJoin       act = "let the next machine never become a Node"
	report           act = "let all kubelets report again, and all be well"
	preserve         act = "preserve a Machine"
	pauseMachine     act = "pause a Machine"
	pauseSet         act = "pause a MachineSet"
	pauseDeployment  act = "pause a MachineDeployment"
	pauseCluster     act = "pause the Cluster"
	addSurplus       act = "create surplus Machines for a MachineSet"
	freeze           act = "freeze a MachineDeployment"
	unfreeze         act = "end all freezes of creation"
	unpause          act = "unpause everything"
	rotate           act = "rotate the kubeconfig"
)

// What is done to processes and connections.
const (
	killCore      act = "kill the core"
	startCore     act = "start the core"
	killProvider  act = "kill the provider"
	startProvider act = "start the provider"
	outage        act = "the target cluster is gone"
	endOutage     act = "the target cluster is back"
	blackout      act = "most kubelets fall silent at once"
	endBlackout   act = "those kubelets report again"
	storm         act = "more faults"
	endStorm      act = "usual faults"
)

// weights are how often each action is drawn.
var weights = []struct {
	act    act
	weight int
}{
	{deleteMachine, 18},
	{preferMachine, 4},
	{markMachine, 14},
	{scaleSet, 8},
	{scaleDeployment, 8},
	{rollOut, 5},
	{wave, 5},
	{deleteSet, 1},
	{deleteNode, 8},
	{vanish, 4},
	{deleteInfra, 3},
	{removeByForce, 4},
	{fallSilent, 8},
	{spoilNode, 8},
	{failToJoin, 3},
	{report, 2},
	{preserve, 4},
	{pauseMachine, 4},
	{pauseSet, 2},
	{pauseDeployment, 2},
	{pauseCluster, 1},
	{addSurplus, 3},
	{freeze, 2},
	{unfreeze, 3},
	{unpause, 8},
	{rotate, 2},
}

// action is one action. Which object it is about is decided when it happens, by pick: names are not known before.
type action struct {
	at   time.Duration
	act  act
	pick uint64
	// amount is between 0 and 1.
	amount float64
}

// String is the line that is printed.
func (a action) String() string { return fmt.Sprintf("%6.2fs %s", a.at.Seconds(), a.act) }

// makePlan is everything that is done in a run, in order. It follows from the options alone.
func makePlan(o Options) []action {
	random := rand.New(rand.NewPCG(o.Seed, 1)) // Chaos, not secrets.
	add := func(plan []action, at time.Duration, a act) []action {
		return append(plan, action{at: at, act: a, pick: random.Uint64(), amount: random.Float64()})
	}
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(random.Int64N(int64(high-low)))
	}
	var plan []action
	// The number of actions grows with the Machines, from that for 20 up to what an API server can serve meanwhile.
	pause := max(12*time.Second/time.Duration(max(o.Machines, 20)), 100*time.Millisecond)
	for at := between(0, pause); at < o.Duration; at += between(pause/4, 2*pause) {
		plan = add(plan, at, drawAct(random))
	}
	pairs := func(first, gap time.Duration, begin, end act, low, high time.Duration) {
		for at := between(first/2, first); at < o.Duration; at += between(gap/2, 3*gap/2) {
			plan = add(plan, at, begin)
			at += between(low, high)
			plan = add(plan, at, end)
		}
	}
	pairs(3*time.Second, 5*time.Second, killCore, startCore, 10*time.Millisecond, 1500*time.Millisecond)
	pairs(7*time.Second, 12*time.Second, killProvider, startProvider, 10*time.Millisecond, 1500*time.Millisecond)
	pairs(10*time.Second, 20*time.Second, outage, endOutage, time.Second, 6*time.Second)
	pairs(6*time.Second, 12*time.Second, storm, endStorm, 500*time.Millisecond, 3*time.Second)
	pairs(8*time.Second, 16*time.Second, blackout, endBlackout, 3*time.Second, 6*time.Second)
	plan = add(plan, between(o.Duration/4, o.Duration), deleteDeployment)
	slices.SortStableFunc(plan, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	return plan
}

func drawAct(random *rand.Rand) act {
	sum := 0
	for _, w := range weights {
		sum += w.weight
	}
	at := random.IntN(sum)
	for _, w := range weights {
		if at -= w.weight; at < 0 {
			return w.act
		}
	}
	return unpause
}
