package drivertest

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
)

// plainLife: one launch, one machine with its provider ID, addresses, place and type; nothing but lists while it runs; one deletion, and
// nothing is left.
func plainLife[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		calls := l.calls()
		l.begin(ObjectOptions{AllDomains: true, AllTypes: true})
		l.runs()
		status := l.object().CommonStatus()
		l.Expect(status.FailureDomain).To(BeElementOf(l.cloud.Domains[0], l.cloud.Domains[1]))
		l.Expect(status.InstanceType).To(Equal(l.cloud.Types[0]))
		l.Expect(status.Addresses).NotTo(BeEmpty())
		l.Expect(status.IsProvisioned()).To(BeTrue())
		time.Sleep(5 * time.Minute)
		l.runsForNothing(30*time.Minute, 150)
		l.remove()
		l.Expect(calls(l.cloud.Launches)).To(Equal(1))
		l.Expect(calls(l.cloud.Ends)).To(Equal(1))
	})
}

// runsForNothing checks that a while of a machine that runs costs lists alone.
func (l *life[M]) runsForNothing(during time.Duration, most int) {
	calls, lists := l.calls(), 0
	time.Sleep(during)
	for _, name := range l.cloud.Lists {
		lists += calls(name)
	}
	if all := calls(""); all != lists || all > most {
		l.Violate("%d calls in %s of a machine that runs, %d of them lists", all, during, lists)
	}
}

// lostAnswers: whatever becomes of the one call that launches or ends, and of its answer, there is one machine at most, and nothing is
// left.
func lostAnswers[M driver.Object](t *testing.T, p Provider[M]) {
	fates := []string{
		simulation.LostRequest, simulation.LostAnswer, simulation.Hang, simulation.HangAnswer, simulation.Late, simulation.Slow,
		simulation.Unavailable, simulation.Internal,
	}
	for _, fate := range fates {
		t.Run(fate, func(t *testing.T) {
			live(t, p, 1, func(l *life[M]) {
				l.once(l.cloud.Launches, fate)
				l.begin(ObjectOptions{AllDomains: true})
				l.runs()
				l.once(l.cloud.Ends, fate)
				l.remove()
			})
			live(t, p, 2, func(l *life[M]) {
				l.once(l.cloud.Launches, fate)
				l.begin(ObjectOptions{})
				time.Sleep(time.Second)
				l.remove()
			})
		})
	}
}

// crashAtEveryCall: the process exits before or after the effect of any single request to the API server or call of a life; the next
// process finishes it, with one machine, and then nothing is left.
func crashAtEveryCall[M driver.Object](t *testing.T, p Provider[M]) {
	life := func(at int, when string) (points int) {
		live(t, p, 1, func(l *life[M]) {
			l.CrashAt, l.CrashWhen = at, when
			l.begin(ObjectOptions{AllDomains: true})
			l.runs()
			l.remove()
			l.Expect(l.marked).To(HaveLen(1), "machines, with a crash %s point %d", when, at)
			points = l.Points()
		})
		return points
	}
	points := life(-1, "")
	NewWithT(t).Expect(points).To(BeNumerically(">", 15))
	for at := 0; at < points && !t.Failed(); at++ {
		life(at, "before")
		life(at, "after")
	}
	t.Logf("%d requests and calls, each crashed at before and after its effect", points)
}

// twoProcesses: the old leader stalls in its launch, its call arrives late, and it continues for a while beside the new leader, which
// launches as well.
func twoProcesses[M driver.Object](t *testing.T, p Provider[M]) {
	for seed := range uint64(6) {
		live(t, p, seed, func(l *life[M]) {
			l.once(l.cloud.Launches, simulation.Late)
			l.add(ObjectOptions{})
			old := l.Start(l.Server())
			time.Sleep(time.Second)
			l.Start(l.Server())
			l.After(time.Duration(seed)*10*time.Second, func() { old.Stop("has lost its lease") })
			l.becomesReady(bound)
			time.Sleep(2 * time.Minute) // The late call has arrived.
			l.runs()
			l.remove()
		})
	}
}

// deletedInMidCreation: the Machine is deleted at any time of its creation, whether that would succeed or not; nothing is left.
func deletedInMidCreation[M driver.Object](t *testing.T, p Provider[M]) {
	for _, fails := range []bool{false, true} {
		for after := 100 * time.Millisecond; after < 3*time.Minute && !t.Failed(); after = after*3/2 + 50*time.Millisecond {
			live(t, p, 1, func(l *life[M]) {
				if fails && l.cloud.FailLate != nil {
					l.cloud.FailLate(1)
				}
				l.begin(ObjectOptions{AllDomains: true})
				time.Sleep(after)
				l.remove()
			})
		}
	}
}

// launchTimeout: a machine that does not run in time has failed permanently, and is ended with its object.
func launchTimeout[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		calls := l.calls()
		l.cloud.Stick()
		l.begin(ObjectOptions{}, func(obj M) { obj.CommonSpec().LaunchTimeoutSeconds = ptr.To[int32](300) })
		l.await(20*time.Minute, "the launch has failed", func() bool { return l.reason() == driverv1.InstanceLaunchTimeoutReason })
		l.Expect(l.object().CommonStatus().FailureReason).NotTo(BeNil())
		time.Sleep(30 * time.Minute)
		l.Expect(calls(l.cloud.Launches)).To(Equal(1), "it is not launched again")
		l.remove()
	})
}
