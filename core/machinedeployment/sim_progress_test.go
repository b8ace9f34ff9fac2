package machinedeployment

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// simDeadline is the progress deadline in a simulated world, in rounds of a minute each.
const simDeadline = 6

// observer shows a simulated world to the code that judges progress, as objects would, and remembers what it has shown.
type observer struct {
	*simulation
	deployment *clusterv1.MachineDeployment
	tracker    *tracker
	now        time.Time
	// turned reports when the availability of a Machine changed last.
	turned map[int]turn
	// shown is what was seen in each round.
	shown []shown
}

type turn struct {
	available bool
	at        time.Time
}

type shown struct {
	underWay, stalled, restarted bool
	current                      string
	score, replicas              int
	byPerson                     bool
}

// scope makes objects of the world.
func (o *observer) scope() *scope {
	s := begin(o.deployment)
	s.Now, s.deployment, s.read, s.machines = o.now, o.deployment, true, map[types.UID][]*clusterv1.Machine{}
	s.settings = settings{replicas: o.replicas, strategy: o.strategy, paused: o.paused}
	s.deployment.Spec.Replicas = ptr.To(int32(o.replicas))
	s.deployment.Spec.Template.Spec.InfrastructureRef.Name = fmt.Sprint(o.template)
	for _, from := range o.sets {
		set := setOf(from.name, fmt.Sprint(from.template), int32(from.desired), 0, "1")
		for _, machine := range from.machines {
			if last, ok := o.turned[machine.name]; !ok || last.available != machine.available {
				o.turned[machine.name] = turn{machine.available, o.now}
			}
			reported := conditions.False(clusterv1.MachineAvailableCondition, "NotAvailable", "")
			if machine.available {
				reported.Status = metav1.ConditionTrue
			}
			reported.LastTransitionTime = metav1.NewTime(o.turned[machine.name].at)
			object := member(fmt.Sprint(machine.name), 0, reported)
			if machine.deleting {
				object.DeletionTimestamp = ptr.To(metav1.NewTime(o.now))
			}
			s.machines[set.UID] = append(s.machines[set.UID], object)
		}
		s.sets = append(s.sets, set)
		if o.current() == from {
			s.current = set
		}
	}
	return s
}

// observe does what a reconcile does, but for its writes to the API server.
func (o *observer) observe(restarts bool) {
	o.now = o.now.Add(time.Minute)
	s := o.scope()
	// What fails while no process runs is seen by none.
	if last := len(o.shown) - 1; last < 0 || score(s) < o.shown[last].score {
		restarts = false
	}
	if restarts {
		o.tracker = &tracker{}
	}
	if !underWay(s) {
		o.tracker.forget(s.deployment.UID)
		delete(s.deployment.Annotations, ProgressAnnotation)
	} else {
		best, record := o.tracker.assess(s, simDeadline*time.Minute)
		s.progress, s.stalled = best.Since.Time, o.now.Sub(best.Since.Time) >= simDeadline*time.Minute
		if record {
			s.deployment.Annotations = map[string]string{ProgressAnnotation: best.text()}
		}
	}
	s.setStatus(nil)
	o.deployment.Status = s.Object.Status
	reported := meta.FindStatusCondition(o.deployment.Status.Conditions, clusterv1.MachineDeploymentRollingOutCondition)
	o.shown = append(o.shown, shown{
		underWay: underWay(
			s,
		),
		stalled:   reported.Status == metav1.ConditionTrue && reported.Reason == ProgressDeadlineExceededReason,
		restarted: restarts,
		current:   currentName(s),
		score:     score(s),
		replicas:  o.replicas,
		byPerson:  byPerson(s),
	})
}

// check holds the last round to the promises: what was missing for the whole deadline, and longer, without a new best, is
// reported; nothing is reported while nothing is missing, nor within the deadline after a new best.
func (o *observer) check(t *testing.T) {
	t.Helper()
	last := len(o.shown) - 1
	now := o.shown[last]
	if !now.underWay {
		if now.stalled {
			t.Fatalf("round %d: nothing is missing, and it says that it stalls\n%s", last, o.trace.String())
		}
		return
	}
	// The episode in which the same is wanted, and since when it has had its best.
	first, restarted := last, false
	for i := last; i >= 0 && o.shown[i].underWay && o.shown[i].current == now.current &&
		o.shown[i].replicas == now.replicas && o.shown[i].byPerson == now.byPerson; i-- {
		first = i
	}
	since, best := first, o.shown[first].score
	for i := first; i <= last; i++ {
		restarted = restarted || o.shown[i].restarted
		if o.shown[i].score > best {
			best, since = o.shown[i].score, i
		}
	}
	// A process that starts reads the time off the objects, which may be late by half a deadline.
	slack := 1
	if restarted {
		slack = simDeadline/2 + 1
	}
	if rounds := last - since; rounds >= simDeadline+slack && !now.stalled {
		t.Fatalf("round %d: nothing came nearer for %d rounds, and nothing is reported\n%s", last, rounds, o.trace.String())
	}
	if last-first < simDeadline && first > 0 && !o.shown[first-1].underWay && now.stalled {
		t.Fatalf("round %d: it says that it stalls %d rounds after it began\n%s", last, last-first, o.trace.String())
	}
}

// TestSimulatedStallsAreReported lets worlds go through chaos – Machines that never come up, that are remediated, that come and go,
// people and restarts – and holds RollingOut to what happened.
func TestSimulatedStallsAreReported(t *testing.T) {
	stalls := 0
	for seed := range uint64(seeds / 20) {
		o := &observer{
			simulation: newSimulation(seed), deployment: valid(), tracker: &tracker{}, now: start, turned: map[int]turn{},
		}
		o.chaos = true
		o.note("seed %d", seed)
		for round := range 2 * rounds {
			o.step(t, round)
			if o.IntN(4) == 0 {
				o.people()
			}
			o.observe(o.IntN(5) == 0)
			o.check(t)
			if o.shown[round].stalled {
				stalls++
			}
		}
	}
	if stalls == 0 {
		t.Fatal("no world has stalled")
	}
}
