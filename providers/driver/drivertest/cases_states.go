package drivertest

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/orphans"
)

var machineID = simulation.MachineID(name)

// vanished: a machine that was deleted in the cloud is reported, and never launched again.
func vanished[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		calls := l.calls()
		l.begin(ObjectOptions{})
		l.runs()
		l.cloud.Vanish(l.machines()[0])
		l.await(15*time.Minute, "it says so", func() bool { return l.reason() == driverv1.InstanceVanishedReason })
		l.isNotLaunchedAgain(calls)
		l.remove()
	})
}

// isNotLaunchedAgain: what has run and does not any more has failed permanently, and costs nothing.
func (l *life[M]) isNotLaunchedAgain(calls func(string) int) {
	l.Expect(l.object().CommonStatus().FailureReason).NotTo(BeNil())
	time.Sleep(time.Hour)
	l.Expect(calls(l.cloud.Launches)).To(Equal(1))
}

// takenBack: likewise, for the cloud that needs the capacity of a spot machine.
func takenBack[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		calls := l.calls()
		l.begin(ObjectOptions{Spot: true})
		l.runs()
		l.cloud.TakeBack(l.machines()[0])
		l.await(15*time.Minute, "it says so", func() bool {
			reason := l.reason()
			return reason == driverv1.InstanceInterruptedReason || reason == driverv1.InstanceVanishedReason // A deleted one is not reported.
		})
		l.isNotLaunchedAgain(calls)
		l.remove()
	})
}

// stopped: a machine that a user has stopped can be started again: it is not Ready, and has not failed.
func stopped[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		l.begin(ObjectOptions{})
		l.runs()
		l.cloud.Stop(l.machines()[0])
		l.await(15*time.Minute, "it says so", func() bool { return l.reason() == driverv1.InstanceStoppedReason })
		l.Expect(l.object().CommonStatus().FailureReason).To(BeNil())
		l.remove()
	})
}

// event is something that happens once.
type event[M driver.Object] struct {
	name string
	do   func(*life[M], *rand.Rand)
}

// events that may happen in any state.
func events[M driver.Object]() []event[M] {
	return []event[M]{
		{"a crash", func(l *life[M], _ *rand.Rand) { l.Processes()[0].Crash("now"); time.Sleep(20 * time.Second) }},
		{"another leader", func(l *life[M], d *rand.Rand) { l.TakeOver(d); time.Sleep(20 * time.Second) }},
		{"throttling", func(l *life[M], _ *rand.Rand) {
			l.cloud.Refuse("", driver.ClassThrottle)
			time.Sleep(3 * time.Minute)
			l.cloud.Calm()
		}},
		{"expired credentials", func(l *life[M], _ *rand.Rand) {
			if l.cloud.Expire != nil {
				l.cloud.Expire()
				time.Sleep(10 * time.Minute)
				l.cloud.Calm()
			}
		}},
		{"a pause", func(l *life[M], _ *rand.Rand) {
			l.Server().Pause(true)
			time.Sleep(4 * time.Minute)
			l.Server().Pause(false)
		}},
		{"a machine that vanishes", func(l *life[M], _ *rand.Rand) {
			for _, m := range l.machines() {
				l.cloud.Vanish(m)
			}
		}},
		{"an answer that is lost", func(l *life[M], _ *rand.Rand) {
			l.Chaos.SetScript(func(string) string { return simulation.LostAnswer })
			time.Sleep(2 * time.Minute)
			l.Chaos.SetScript(nil)
		}},
		{"writes that are forbidden", func(l *life[M], _ *rand.Rand) {
			l.Chaos.SetOn(true)
			l.Chaos.Forbid("patch", time.Now().Add(2*time.Minute))
			l.Chaos.Forbid("patch status", time.Now().Add(2*time.Minute))
			time.Sleep(2 * time.Minute)
			l.Chaos.SetOn(false)
		}},
		{"a deletion", func(l *life[M], _ *rand.Rand) { l.Server().Delete(machineID); time.Sleep(time.Second) }},
		{"a missing capacity", func(l *life[M], _ *rand.Rand) {
			if l.cloud.Exhaust != nil {
				l.cloud.Exhaust("", "")
				time.Sleep(5 * time.Minute)
				l.cloud.Calm()
			}
		}},
	}
}

// statesAndEvents: whatever happens in whatever state, there is one machine at most, what is reported is true once all is quiet, and
// nothing is left after the deletion.
func statesAndEvents[M driver.Object](t *testing.T, p Provider[M]) {
	states := []struct {
		name  string
		reach func(*life[M])
	}{
		{"before the launch", func(*life[M]) {}},
		{"launching", func(*life[M]) { time.Sleep(300 * time.Millisecond) }},
		{"starting", func(*life[M]) { time.Sleep(4 * time.Second) }},
		{"running", func(l *life[M]) { l.runs() }},
		{"terminating", func(l *life[M]) { l.runs(); l.Server().Delete(machineID); time.Sleep(4 * time.Second) }},
	}
	for _, state := range states {
		for _, e := range events[M]() {
			t.Run(state.name+", "+e.name, func(t *testing.T) {
				live(t, p, 3, func(l *life[M]) {
					l.begin(ObjectOptions{AllDomains: true})
					state.reach(l)
					e.do(l, l.Random.Draw("event"))
					l.EnsureProcess(l.Server())
					l.settles()
					if !l.gone() {
						l.remove()
					}
				})
			})
		}
	}
}

// settles waits until each machine runs, has failed permanently since there is none, or is gone with its object.
func (l *life[M]) settles() {
	l.await(bound, "all is well", func() bool {
		running := map[string]bool{}
		for _, m := range l.machines() {
			running[m.ID] = m.Running
		}
		for n := range l.others {
			if !l.settled(memberName(n), running) {
				return false
			}
		}
		return l.settled(name, running)
	})
}

// settled returns whether an object is gone, has failed, and its machine does not run, or is Ready, and its machine runs.
func (l *life[M]) settled(name string, running map[string]bool) bool {
	if l.Server().Get(l.ObjectID(name)) == nil {
		return true
	}
	obj := l.Server().Machine(name)
	if runs := running[obj.CommonSpec().ProviderID]; runs || !obj.CommonStatus().HasFailed() {
		ready := meta.FindStatusCondition(obj.CommonStatus().Conditions, driverv1.ReadyCondition)
		return runs && ready != nil && ready.Reason == driverv1.InstanceRunningReason
	}
	return true
}

// orphaned: an object that is removed by force leaves its machine behind, with all that was launched with it; the collector ends both,
// and nothing of others.
func orphaned[M driver.Object](t *testing.T, p Provider[M]) {
	for what, vanishes := range map[string]bool{"a machine": false, "what a machine has left": true} {
		t.Run(what, func(t *testing.T) {
			live(t, p, 1, func(l *life[M]) {
				l.Options.Orphans = orphans.Options{
					Policy: orphans.PolicyDelete, Period: orphans.DefaultPeriod,
					Record: types.NamespacedName{Namespace: simulation.Namespace, Name: "record"},
				}
				l.begin(ObjectOptions{})
				time.Sleep(time.Minute)
				l.runs()
				time.Sleep(40 * time.Minute)
				l.Expect(l.machines()).To(HaveLen(1), "it is nobody's orphan")
				if vanishes {
					l.cloud.Vanish(l.machines()[0])
				}
				for _, id := range []simulation.ID{l.ObjectID(name), machineID} {
					l.Server().Change(id, func(obj client.Object) {
						obj.SetFinalizers(nil)
						obj.SetDeletionTimestamp(ptr.To(metav1.Now()))
					})
				}
				l.await(3*time.Hour, "nothing is left", func() bool { return len(l.left()) == 0 })
			})
		})
	}
}
