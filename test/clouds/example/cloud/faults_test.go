package cloud_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/example/cloud"
)

const (
	create = "CreateMachine"
	m1     = "zones/a/machines/m1"
)

// TestAnswersAreLost, before or after the effect.
func TestAnswersAreLost(t *testing.T) {
	for broken, effect := range map[cloud.Break]int{cloud.LoseRequest: 0, cloud.LoseAnswer: 1} {
		t.Run(string(broken), func(t *testing.T) {
			f := newFixture(t, cloud.Options{})
			f.AddFault(cloud.Fault{Call: create, Count: 1, Break: broken})
			f.Expect(f.create("a", "m1", "r1").err).To(HaveOccurred())
			f.Expect(f.Machines(account, nil)).To(HaveLen(effect))
			f.Expect(f.create("a", "m1", "r1").status).To(Equal(http.StatusAccepted), "the fault is over")
			f.Expect(f.Count(account, "request", "r1").Creates).To(Equal(1))
			f.Expect(f.Calls()).To(HaveKeyWithValue(create, 2))
		})
	}
}

// TestAnswersHang until the caller gives up: from the first byte, or in the middle of the body.
func TestAnswersHang(t *testing.T) {
	for broken, effect := range map[cloud.Break]int{cloud.HangRequest: 0, cloud.HangAnswer: 1, cloud.HangBody: 1} {
		t.Run(string(broken), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, cloud.Options{})
				f.AddFault(cloud.Fault{Break: broken})
				ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
				defer cancel()
				began := time.Now()
				f.Expect(f.doWithin(ctx, http.MethodPut, m1, body("r1")).err).To(MatchError(context.DeadlineExceeded))
				f.Expect(time.Since(began)).To(Equal(7*time.Second), "by the clock of the bubble")
				f.Expect(f.Machines(account, nil)).To(HaveLen(effect))
			})
		})
	}
}

// TestErrors instead of an answer, before the effect or after it.
func TestErrors(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	injected := cloud.Fault{
		Call: create, Count: 1, Status: http.StatusServiceUnavailable, Failure: cloud.Failure{Code: cloud.CodeUnavailable, Message: "later"},
		RetryAfter: 1500 * time.Millisecond,
	}
	f.AddFault(injected)
	refused := f.create("a", "m1", "r1")
	f.refused(refused, http.StatusServiceUnavailable, cloud.CodeUnavailable)
	f.Expect(refused.header.Get("Retry-After")).To(Equal("2"), "whole seconds, rounded up")
	f.Expect(f.Machines(account, nil)).To(BeEmpty())
	injected.AfterEffect = true
	f.AddFault(injected)
	f.refused(f.create("a", "m1", "r1"), http.StatusServiceUnavailable, cloud.CodeUnavailable)
	f.Expect(f.Machines(account, nil)).To(HaveLen(1))
}

// TestFaultsHitWhatTheyAreFor: the n-th call, calls that match, calls within a time, until they are removed.
func TestFaultsHitWhatTheyAreFor(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	lost := func() bool { return f.get("machines").err != nil }
	f.AddFault(cloud.Fault{Call: "ListMachines", Skip: 1, Count: 2, Break: cloud.LoseAnswer})
	f.Expect([]bool{lost(), lost(), lost(), lost()}).To(Equal([]bool{false, true, true, false}))

	f.AddFault(
		cloud.Fault{
			Match: func(c cloud.Call) bool { return c.Zone == "a" && c.Resource == "m1" && c.Account == account },
			Break: cloud.LoseAnswer,
		},
	)
	f.Expect([]bool{lost(), f.get(m1).err != nil, f.get("zones/b/machines/m1").err != nil}).To(Equal([]bool{false, true, false}))
	f.ClearFaults()
	f.Expect(f.get(m1).err).NotTo(HaveOccurred())

	f.AddFault(cloud.Fault{For: time.Minute, Break: cloud.LoseAnswer})
	f.Expect(lost()).To(BeTrue())
	f.step(time.Minute)
	f.Expect(lost()).To(BeFalse())

	remove := f.AddFault(cloud.Fault{Break: cloud.LoseAnswer})
	f.Expect(lost()).To(BeTrue())
	remove()
	f.Expect(lost()).To(BeFalse())
}

// TestOperationsFailLate, with any code, and leave behind what was created by then.
func TestOperationsFailLate(t *testing.T) {
	for parts := range 4 {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d parts, kept %t", parts, keep), func(t *testing.T) {
				f := newFixture(t, cloud.Options{})
				failure := &cloud.Failure{Code: "some_code", Message: "why"}
				f.AddFault(cloud.Fault{Call: create, Count: 1, Operation: cloud.OperationFault{Fail: failure, Parts: parts, Keep: keep}})
				o := f.create("a", "m1", "r1")
				f.settle()
				f.Expect(f.get("operations/" + o.ID).Status).To(Equal(cloud.StatusFailed))
				f.Expect(f.get("operations/" + o.ID).Failure).To(Equal(failure))
				if !keep {
					f.Expect(f.get(m1).status).To(Equal(http.StatusNotFound))
					f.Expect(f.Resources(account, nil)).To(HaveLen(parts))
					f.unused(parts)
					f.Expect(f.create("a", "m1", "r2").status).To(Equal(http.StatusAccepted), "the name is free")
					return
				}
				f.Expect(f.get(m1).State).To(Equal(cloud.StateFailed))
				f.Expect(f.get(m1).Failure).To(Equal(failure))
				f.Expect(f.Resources(account, nil)).To(HaveLen(1 + parts))
				f.refused(f.create("a", "m1", "r2"), http.StatusConflict, cloud.CodeNameTaken)
				f.delete(m1)
				f.settle()
				f.Expect(f.get(m1).status).To(Equal(http.StatusNotFound))
			})
		}
	}
}

// unused expects that nothing uses what a creation has left behind, but for the interface, which uses its address.
func (f *fixture) unused(parts int) {
	for i, kind := range []string{cloud.Addresses, cloud.Interfaces, cloud.Disks}[:parts] {
		p, want := f.get(kind).Items[0], ""
		if i == 0 && parts > 1 {
			want = f.get(cloud.Interfaces).Items[0].Name
		}
		f.Expect(p.UsedBy).To(Equal(want), kind)
	}
}

// TestADeletionThatFailsDuringACreation leaves a machine that never runs.
func TestADeletionThatFailsDuringACreation(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.create("a", "m1", "r1")
	f.AddFault(cloud.Fault{Call: "DeleteMachine", Count: 1, Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeInternal}}})
	f.delete(m1)
	f.settle()
	f.Expect(f.get(m1).State).To(Equal(cloud.StateFailed))
	f.Expect(f.get(m1).Failure.Code).To(Equal(cloud.CodeCancelled))
}

// TestOperationsAreSlowOrNeverEnd, and can be cancelled by a deletion; a deletion may fail as well.
func TestOperationsAreSlowOrNeverEnd(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.AddFault(cloud.Fault{Call: create, Count: 1, Operation: cloud.OperationFault{Slow: time.Minute}})
	slow := f.create("a", "m1", "r1")
	f.AddFault(cloud.Fault{Call: create, Count: 1, Operation: cloud.OperationFault{Never: true}})
	never := f.create("a", "m2", "r2")
	f.step(4*time.Minute + 3*time.Second)
	f.Expect(f.get("operations/" + slow.ID).Status).To(Equal(cloud.StatusRunning))
	f.step(time.Second)
	f.Expect(f.get("operations/" + slow.ID).Status).To(Equal(cloud.StatusDone))
	f.step(24 * time.Hour)
	f.Expect(f.get("operations/" + never.ID).Status).To(Equal(cloud.StatusRunning))
	f.delete("zones/a/machines/m2")
	f.settle()
	f.Expect(f.get("zones/a/machines/m2").status).To(Equal(http.StatusNotFound))

	f.AddFault(cloud.Fault{Call: "DeleteMachine", Count: 1, Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeInternal}}})
	o := f.delete(m1)
	f.settle()
	f.Expect(f.get("operations/" + o.ID).Status).To(Equal(cloud.StatusFailed))
	f.Expect(f.get(m1).State).To(Equal(cloud.StateRunning))
	f.AddFault(cloud.Fault{Call: "DeleteInterface", Count: 1, Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeInternal}}})
	f.delete(m1)
	f.settle()
	nic := f.Resources(account, map[string]string{"request": "r1"})[1]
	f.Expect(nic).To(HavePrefix(cloud.Interfaces + "/a/"))
	f.delete("zones/a/interfaces/" + nic[len("interfaces/a/"):])
	f.settle()
	f.Expect(f.Resources(account, nil)).To(ContainElement(nic))
}

// TestStateChangesByTheClockAlone: NextChange is when, and nothing happens without a look.
func TestStateChangesByTheClockAlone(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	_, ok := f.NextChange()
	f.Expect(ok).To(BeFalse())
	f.create("a", "m1", "r1")
	for range 5 {
		at, ok := f.NextChange()
		f.Expect(ok).To(BeTrue())
		f.clock.SetTime(at)
	}
	f.Expect(f.get(m1).State).To(Equal(cloud.StateRunning))
	f.Expect(f.clock.Now()).To(Equal(time.Date(2026, 1, 1, 0, 0, 9, 0, time.UTC)))
}
