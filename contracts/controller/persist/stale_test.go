package persist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/controller/persist"
)

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := persist.Versions{Clock: now}
	at := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	g.Expect(versions.Behind(at("5"))).To(BeZero(), "nothing written yet")
	versions.Wrote(at("10"))
	g.Expect(versions.Behind(at("9"))).To(Equal(30*time.Second), "compared as numbers")
	g.Expect(versions.Behind(at("10"))).To(BeZero())
	g.Expect(versions.Behind(at("9"))).To(BeZero(), "forgotten once caught up")
	versions.Wrote(at("10"))
	versions.Forget("u")
	g.Expect(versions.Behind(at("9"))).To(BeZero())
	versions.Wrote(at("10"))
	now.SetTime(now.Now().Add(20 * time.Second))
	g.Expect(versions.Behind(at("9"))).To(Equal(10*time.Second), "what is left of the half minute")
	now.SetTime(now.Now().Add(10 * time.Second))
	g.Expect(versions.Behind(at("9"))).To(BeZero(), "a cache that never catches up holds nothing for ever")
	versions.Wrote(at("not a version"))
	g.Expect(versions.Behind(at("9"))).To(BeZero(), "what cannot be compared never blocks")
}

// TestAWriteWithoutAnAnswer: it is unknown whether it took effect. A reconcile before the cache shows that it did finds there what
// it computes, and writes nothing; so the event of the write triggers another reconcile, although nothing but the own status has changed.
func TestAWriteWithoutAnAnswer(t *testing.T) {
	resource := schema.GroupResource{Resource: "machines"}
	for name, test := range map[string]struct {
		err   error
		wakes bool
	}{
		"no error":               {nil, false},
		"a broken connection":    {fmt.Errorf("patching: %w", errors.New("stream error: INTERNAL_ERROR")), true},
		"no answer in time":      {context.DeadlineExceeded, true},
		"the store has failed":   {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), true},
		"the server gave up":     {fmt.Errorf("patching: %w", apierrors.NewTimeoutError("", 1)), true},
		"the server is away":     {apierrors.NewServiceUnavailable(""), true},
		"an answer without code": {&apierrors.StatusError{}, true},
		"a bad request":          {apierrors.NewBadRequest("no patch"), false},
		"a conflict":             {apierrors.NewConflict(resource, "m", nil), false},
		"a policy refuses it":    {fmt.Errorf("patching: %w", apierrors.NewForbidden(resource, "m", nil)), false},
		"it is not valid":        {apierrors.NewInvalid(schema.GroupKind{}, "m", nil), false},
		"too many requests":      {apierrors.NewTooManyRequests("", 1), false},
		"there is none any more": {apierrors.NewNotFound(resource, "m"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			versions := persist.Versions{}
			another := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "another", ResourceVersion: "10"}}
			versions.Failed(another, context.DeadlineExceeded)
			defer func() {
				newer := another.DeepCopy()
				newer.ResourceVersion = "11"
				update := event.UpdateEvent{ObjectOld: another, ObjectNew: newer}
				g.Expect(versions.Awaited().Update(update)).To(BeTrue(), "what happens to one object is nothing to another")
			}()
			at, passes := versioned, func(version string) bool {
				return versions.Awaited().Update(event.UpdateEvent{ObjectOld: versioned("1"), ObjectNew: versioned(version)})
			}
			versions.Failed(at("10"), test.err)
			g.Expect(versions.Behind(at("10"))).To(BeZero(), "no reconcile is held up")
			g.Expect(passes("9")).To(BeFalse(), "a version from before the write")
			g.Expect(passes("10")).To(BeFalse(), "the version before the write, as of a resync")
			g.Expect(passes("11")).To(Equal(test.wakes))
			g.Expect(passes("12")).To(Equal(test.wakes), "the other may have been another writer's")
			versions.Wrote(at("20"))
			g.Expect(versions.Behind(at("19"))).To(BeNumerically(">", time.Second))
			g.Expect(passes("20")).To(BeTrue(), "awaited")
			g.Expect(passes("21")).To(BeFalse(), "a write has succeeded")
			g.Expect(versions.Behind(at("21"))).To(BeZero())
			g.Expect(passes("22")).To(BeFalse(), "the cache has caught up")

			versions.Wrote(at("25"))
			versions.Failed(at("25"), test.err)
			g.Expect(passes("25")).To(BeFalse(), "the first of two writes of one reconcile")
			g.Expect(passes("26")).To(Equal(test.wakes), "the second")

			versions.Failed(at("30"), test.err)
			g.Expect(versions.Awaited().Delete(event.DeleteEvent{Object: at("31")})).To(BeFalse())
			g.Expect(passes("32")).To(BeFalse(), "forgotten with the object")
		})
	}
}

// TestAWriteWithoutAnAnswerIsForgotten after an hour, when others get none: the object may have ended before the failure was taken in, so
// that no event drops it.
func TestAWriteWithoutAnAnswerIsForgotten(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := persist.Versions{Clock: now}
	at := func(uid types.UID, version string) *clusterv1.Machine {
		obj := versioned(version)
		obj.UID = uid
		return obj
	}
	passes := func(uid types.UID) bool {
		return versions.Awaited().Update(event.UpdateEvent{ObjectOld: at(uid, "10"), ObjectNew: at(uid, "11")})
	}
	for _, uid := range []types.UID{"a", "b", "c"} {
		versions.Failed(at(uid, "10"), context.DeadlineExceeded)
		g.Expect(passes("a")).To(Equal(uid != "c"), "when %s failed", uid)
		now.SetTime(now.Now().Add(30 * time.Minute))
	}
	g.Expect(passes("b")).To(BeTrue(), "within the hour when c failed")
	g.Expect(passes("c")).To(BeTrue())
	now.SetTime(now.Now().Add(5 * time.Hour))
	versions.Failed(at("d", "10"), context.DeadlineExceeded)
	g.Expect(passes("c")).To(BeFalse(), "the first failure for hours")
	g.Expect(passes("d")).To(BeTrue())
}

// TestACacheThatIsBehindForLong: what is done in the end is done by an old version, so that the event of the own write is looked at.
func TestACacheThatIsBehindForLong(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := persist.Versions{Clock: now}
	versions.Wrote(versioned("10"))
	now.SetTime(now.Now().Add(time.Minute))
	versions.Wrote(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "another", ResourceVersion: "11"}})
	g.Expect(versions.Behind(versioned("9"))).To(BeZero())
	g.Expect(versions.Awaited().Update(event.UpdateEvent{ObjectOld: versioned("9"), ObjectNew: versioned("10")})).To(BeTrue())
}

func versioned(version string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
}

func TestAwaited(t *testing.T) {
	g := NewWithT(t)
	versions := persist.Versions{}
	awaited := versions.Awaited()
	at := func(version string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	passes := func(version string) bool {
		return awaited.Update(event.UpdateEvent{ObjectOld: at("1"), ObjectNew: at(version)})
	}
	g.Expect(passes("5")).To(BeFalse(), "nothing written yet")

	versions.Wrote(at("10"))
	g.Expect(passes("10")).To(BeFalse(), "no reconcile waits")
	g.Expect(versions.Behind(at("9"))).To(Equal(time.Millisecond), "the event came between the read and the question")
	g.Expect(versions.Behind(at("10"))).To(BeZero())

	versions.Wrote(at("20"))
	g.Expect(versions.Behind(at("10"))).To(BeNumerically(">", time.Second))
	g.Expect(passes("15")).To(BeFalse(), "another's write from before")
	g.Expect(passes("20")).To(BeTrue())
	g.Expect(passes("21")).To(BeFalse(), "woken once")

	versions.Released(at("21"))
	g.Expect(versions.Behind(at("21"))).To(BeNumerically(">", time.Second), "there is nothing to do until the end comes")
	g.Expect(passes("22")).To(BeFalse())
	g.Expect(versions.Behind(at("22"))).To(BeNumerically(">", time.Second))

	versions.Wrote(at("30"))
	g.Expect(awaited.Delete(event.DeleteEvent{Object: at("29")})).To(BeFalse())
	g.Expect(versions.Behind(at("29"))).To(BeZero(), "forgotten with the object")
	g.Expect(awaited.Create(event.CreateEvent{Object: at("30")})).To(BeFalse())
	g.Expect(awaited.Generic(event.GenericEvent{Object: at("30")})).To(BeFalse())
}
