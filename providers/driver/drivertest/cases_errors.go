package drivertest

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// refusal is a class of errors with what comes of it, of launches and of deletions. Empty reasons are not tested.
type refusal struct {
	class            driver.Class
	launch, deletion string
	// most is how many calls are made in half an hour.
	most int
}

var refusals = []refusal{
	{driver.ClassCapacity, driverv1.InsufficientCapacityReason, "", 25},
	{driver.ClassQuota, driverv1.QuotaExceededReason, "", 10},
	{driver.ClassThrottle, driverv1.ThrottledReason, driverv1.ThrottledReason, 45},
	{driver.ClassAuth, driverv1.UnauthorizedReason, driverv1.UnauthorizedReason, 10},
	{driver.ClassUnresolved, driverv1.UnresolvedReferenceReason, "", 10},
	{driver.ClassTerminal, driverv1.InvalidConfigurationReason, driverv1.DeletionBlockedReason, 10},
	{driver.ClassRefused, driverv1.CloudErrorReason, driverv1.CloudErrorReason, 20},
	{driver.ClassUnknown, driverv1.CloudErrorReason, driverv1.CloudErrorReason, 20},
}

// refusedLaunches: the driver finds the class of each error; the condition has the cloud's words; few calls are made meanwhile; and once
// it is over the machine is launched, alone, without a user, unless its spec can never be right.
func refusedLaunches[M driver.Object](t *testing.T, p Provider[M]) {
	for _, r := range refusals {
		t.Run(string(r.class), func(t *testing.T) {
			var codes []string
			live(t, p, 1, func(l *life[M]) {
				if codes = l.cloud.Codes[r.class]; len(codes) > 0 {
					return
				}
				if !l.cloud.Refuse(l.cloud.Launches, r.class) {
					t.Logf("the cloud refuses no launch so")
					return
				}
				l.refused(r)
			})
			for _, code := range codes {
				t.Run(code, func(t *testing.T) {
					live(t, p, 1, func(l *life[M]) {
						l.cloud.RefuseLaunches(code)
						l.refused(r)
						l.Expect(l.History()).To(ContainElement(ContainSubstring(code)))
					})
				})
			}
		})
	}
}

// refused begins a life in which launches are refused for half an hour.
func (l *life[M]) refused(r refusal) {
	calls := l.calls()
	l.begin(ObjectOptions{})
	time.Sleep(30 * time.Minute)
	l.Expect(l.ready()).To(And(HavePrefix("False "+r.launch+": "), ContainSubstring(Because)))
	l.Expect(calls(l.cloud.Launches)).To(And(BeNumerically(">", 0), BeNumerically("<=", r.most)))
	l.Expect(l.machines()).To(BeEmpty())
	failed := l.object().CommonStatus().HasFailed()
	l.Expect(failed).To(Equal(r.class == driver.ClassTerminal))
	if l.cloud.Calm(); !failed {
		l.runs()
	}
	l.remove()
}

// refusedDeletions: the object stays as long as its machine, says why, asks now and then, and goes once the cloud lets it.
func refusedDeletions[M driver.Object](t *testing.T, p Provider[M]) {
	for _, r := range refusals {
		if r.deletion == "" {
			continue
		}
		t.Run(string(r.class), func(t *testing.T) {
			live(t, p, 1, func(l *life[M]) {
				l.begin(ObjectOptions{})
				l.runs()
				if !l.cloud.Refuse(l.cloud.Ends, r.class) {
					t.Logf("the cloud refuses no deletion so")
					return
				}
				calls := l.calls()
				l.Server().Delete(machineID)
				time.Sleep(30 * time.Minute)
				l.Expect(l.ready()).To(And(HavePrefix("False "+r.deletion+": "), ContainSubstring(Because)))
				l.Expect(calls(l.cloud.Ends)).To(And(BeNumerically(">", 0), BeNumerically("<=", r.most)))
				l.Expect(l.machines()).To(HaveLen(1))
				l.cloud.Calm()
				l.removed()
			})
		})
	}
}

// shortOutage is how long clouds throttle at times. What runs need not report it before it has lasted for longer.
const shortOutage = 5 * time.Minute

// refusedEverything: the cloud refuses all calls for an hour, or throttles them for five minutes, before the launch or while the machine
// runs. A machine that runs stays Ready, since all would be replaced else, and reports that it may be out of date; few calls are made; and
// once it is over all is well by itself.
func refusedEverything[M driver.Object](t *testing.T, p Provider[M]) {
	for _, r := range refusals {
		if r.class != driver.ClassThrottle && r.class != driver.ClassAuth && r.class != driver.ClassUnknown {
			continue
		}
		for state, runs := range map[string]bool{"before the launch": false, "while it runs": true} {
			for _, lasts := range []time.Duration{shortOutage, time.Hour} {
				if lasts == shortOutage && r.class != driver.ClassThrottle {
					continue
				}
				t.Run(fmt.Sprint(r.class, " ", state, " for ", lasts), func(t *testing.T) {
					live(t, p, 1, func(l *life[M]) { l.outage(lasts, runs, r.launch, func() bool { return l.cloud.Refuse("", r.class) }) })
				})
			}
		}
	}
}

// expired: the same for credentials that the cloud refuses.
func expired[M driver.Object](t *testing.T, p Provider[M]) {
	for state, runs := range map[string]bool{"before the launch": false, "while it runs": true} {
		t.Run(state, func(t *testing.T) {
			live(t, p, 1, func(l *life[M]) {
				l.outage(time.Hour, runs, driverv1.UnauthorizedReason, func() bool { l.cloud.Expire(); return true })
			})
		})
	}
}

// outage is a time in which nothing works.
func (l *life[M]) outage(lasts time.Duration, runs bool, reason string, begin func() bool) {
	if runs {
		l.begin(ObjectOptions{})
		l.runs()
	}
	if !begin() {
		return
	}
	calls := l.calls()
	if !runs {
		l.begin(ObjectOptions{})
	}
	time.Sleep(lasts)
	if runs {
		l.Expect(l.ready()).To(HavePrefix("True InstanceRunning"), "or all machines would be replaced")
		l.Expect(l.condition(driverv1.CloudReachableCondition)).To(Or(
			HavePrefix("False "+reason+": "), And(HavePrefix("True "), Satisfy(func(string) bool { return lasts <= shortOutage }))))
	} else {
		l.Expect(l.ready()).To(HavePrefix("False " + reason + ": "))
	}
	l.Expect(calls("")).To(BeNumerically("<=", 10+4*lasts.Minutes()), "a list each minute or so")
	l.cloud.Calm()
	l.runs()
	time.Sleep(5 * time.Minute)
	if runs {
		l.Expect(l.condition(driverv1.CloudReachableCondition)).To(HavePrefix("True "))
	}
	l.remove()
}

// rotated: the provider gets other credentials, and those that it had are refused: before the launch, while the machine starts, while it
// runs, while it is deleted. No restart is needed, and the machine is not touched.
func rotated[M driver.Object](t *testing.T, p Provider[M]) {
	for name, at := range map[string]time.Duration{"at once": 0, "during the launch": time.Second, "while it starts": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			live(t, p, 1, func(l *life[M]) {
				l.begin(ObjectOptions{})
				time.Sleep(at)
				l.cloud.Rotate()
				l.runs()
				l.remove()
			})
		})
	}
	live(t, p, 1, func(l *life[M]) {
		l.begin(ObjectOptions{})
		l.runs()
		l.cloud.Rotate()
		time.Sleep(time.Hour)
		l.Expect(l.ready()).To(HavePrefix("True "))
		l.Expect(l.condition(driverv1.CloudReachableCondition)).NotTo(HavePrefix("False"))
		l.runsForNothing(30*time.Minute, 150)
		l.Server().Delete(machineID)
		time.Sleep(2 * time.Second)
		l.cloud.Rotate()
		l.removed()
	})
}
