package drivertest

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// capacityInAnotherZone: with one failure domain short, the machine goes to the other one.
func capacityInAnotherZone[M driver.Object](t *testing.T, p Provider[M]) {
	for at := range 2 {
		live(t, p, 1, func(l *life[M]) {
			calls := l.calls()
			l.cloud.Exhaust(l.cloud.Domains[at], "")
			l.begin(ObjectOptions{AllDomains: true})
			l.becomesReady(5 * time.Minute)
			l.runs()
			l.Expect(l.object().CommonStatus().FailureDomain).To(Equal(l.cloud.Domains[1-at]))
			l.Expect(calls(l.cloud.Launches)).To(BeNumerically("<=", 2))
			l.remove()
		})
	}
}

// capacityOfAnotherType: with the first type short in all failure domains, the machine is of the second.
func capacityOfAnotherType[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		calls := l.calls()
		l.cloud.Exhaust("", l.cloud.Types[0])
		l.begin(ObjectOptions{AllDomains: true, AllTypes: true})
		l.becomesReady(10 * time.Minute)
		l.runs()
		l.Expect(l.object().CommonStatus().InstanceType).To(Equal(l.cloud.Types[1]))
		l.Expect(calls(l.cloud.Launches)).To(BeNumerically("<=", 3))
		l.remove()
	})
}

// capacityNowhere: with one failure domain short, and then all, the machine waits, with few launches that fail, and goes where there is
// room first.
func capacityNowhere[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		l.cloud.Exhaust(l.cloud.Domains[0], "")
		l.begin(ObjectOptions{AllDomains: true})
		l.runs()
		l.remove()
		calls := l.calls()
		l.cloud.Exhaust("", "")
		l.add(ObjectOptions{AllDomains: true, AllTypes: true})
		time.Sleep(time.Hour)
		l.Expect(l.object().CommonStatus().FailureReason).To(BeNil())
		l.Expect(calls(l.cloud.Launches)).To(BeNumerically("<=", 80), "each of the four offerings every three minutes at last")
		l.await(5*time.Minute, "it says that capacity lacks", func() bool { return l.reason() == driverv1.InsufficientCapacityReason })
		l.Expect(l.ready()).To(Or(ContainSubstring(l.cloud.Types[0]), ContainSubstring(l.cloud.Types[1])))
		l.cloud.Calm()
		l.runs()
		l.remove()
	})
}

// lateShortage: a launch that was accepted fails for lack of capacity. What is left of it goes before the next attempt, and one machine
// stays.
func lateShortage[M driver.Object](t *testing.T, p Provider[M]) {
	left := 0
	for launches := range 4 {
		live(t, p, 1, func(l *life[M]) {
			calls := l.calls()
			if launches > 0 {
				l.cloud.FailLate(launches)
			}
			l.begin(ObjectOptions{AllDomains: true, AllTypes: true})
			l.runs()
			l.Expect(calls(l.cloud.Launches)).To(Equal(launches + 1))
			if launches == 0 {
				left = len(l.left())
			}
			l.Expect(l.left()).To(HaveLen(left), "nothing of the attempts that failed")
			l.remove()
		})
	}
}

// quotaOfType: with the quota of the first type used up, the machine is of the second within a minute, and stays to be so while the
// quota is used up: an hour later too, and for machines that come later.
func quotaOfType[M driver.Object](t *testing.T, p Provider[M]) {
	live(t, p, 1, func(l *life[M]) {
		l.Start(l.Server())
		l.cloud.UseUp(l.cloud.Types[0])
		for range 2 {
			calls := l.calls()
			l.add(ObjectOptions{AllDomains: true, AllTypes: true})
			l.await(time.Minute, "the other type is launched", func() bool { return len(l.machines()) == 1 })
			l.runs()
			l.Expect(l.object().CommonStatus().InstanceType).To(Equal(l.cloud.Types[1]))
			l.Expect(calls(l.cloud.Launches)).To(Equal(2))
			l.remove()
			time.Sleep(time.Hour)
		}
	})
}

// quotaOfAllTypes: with every quota used up, the machine waits, with few launches that fail, and says which types were tried. Once one
// type's quota has room, whichever it is, that type is launched.
func quotaOfAllTypes[M driver.Object](t *testing.T, p Provider[M]) {
	for still := range 2 {
		live(t, p, 1, func(l *life[M]) {
			calls := l.calls()
			for _, machineType := range l.cloud.Types {
				l.cloud.UseUp(machineType)
			}
			l.begin(ObjectOptions{AllDomains: true, AllTypes: true})
			time.Sleep(time.Hour)
			l.Expect(l.object().CommonStatus().FailureReason).To(BeNil())
			l.Expect(calls(l.cloud.Launches)).To(And(BeNumerically(">=", 4), BeNumerically("<=", 25)))
			l.await(5*time.Minute, "it says that the quotas are used up", func() bool { return l.reason() == driverv1.QuotaExceededReason })
			l.Expect(l.ready()).To(And(
				ContainSubstring(Because), ContainSubstring(l.cloud.Types[0]), ContainSubstring(l.cloud.Types[1])))
			l.cloud.Calm()
			l.cloud.UseUp(l.cloud.Types[still])
			l.runs()
			l.Expect(l.object().CommonStatus().InstanceType).To(Equal(l.cloud.Types[1-still]))
			l.remove()
		})
	}
}
