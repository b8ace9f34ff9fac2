package overshoot_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/core/safety/overshoot"
)

// TestAScaleDownIsNoOvershoot, until it has had its time.
func TestAScaleDownIsNoOvershoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 6)
	set := w.set("s", 6, d)
	w.machines(set, "a", "b", "c", "d", "e", "f")
	w.reconcile(d)
	w.scale(d, 1)
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute), "the set has not been scaled yet")
	w.scale(set, 1)
	w.clock.Step(10 * time.Second)
	w.G.Expect(w.reconcile(d)).To(Equal(50*time.Second), "it has not read it")
	w.observe(set)
	w.G.Expect(w.reconcile(d)).To(Equal(50*time.Second), "not all deletions have succeeded at once")
	w.remove("a", "b", "c", "d", "e")
	w.G.Expect(w.reconcile(d)).To(BeZero())

	w.scale(d, 0)
	w.scale(set, 0)
	w.machines(set, "x", "y", "z")
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute), "another scale-down has a time of its own")
	w.observe(set)
	w.clock.Step(time.Minute)
	w.G.Expect(frozen(d)).To(Equal("none"))
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.scale(d, 6)
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal("none"), "so many can be meant now")
}

// TestAScaleDownThatARestartHits gets its time again; one that is over does not.
func TestAScaleDownThatARestartHits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	set := w.set("s", 4, d)
	w.machines(set, "a", "b", "c", "d")
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute))
	w.clock.Step(50 * time.Second)
	w.restart()
	w.G.Expect(w.reconcile(d)).To(Equal(time.Minute))
	w.scale(set, 0)
	w.observe(set)
	w.restart()
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
}
