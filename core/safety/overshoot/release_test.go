package overshoot_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/core/safety/overshoot"
)

// TestUnfreezeByHand: both annotations, for a freeze by the core and one by a user.
func TestUnfreezeByHand(t *testing.T) {
	t.Parallel()
	for _, annotation := range []string{overshoot.UnfreezeAnnotation, overshoot.MCMUnfreezeAnnotation} {
		w := newWorld(t)
		d := w.deployment("d", 0)
		w.machines(w.set("s", 0, d), "a", "b", "c")
		w.reconcile(d)
		w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
		w.events()
		w.annotate(d, annotation, `""`)
		w.reconcile(d)
		w.G.Expect(frozen(d)).To(Equal("none"))
		w.G.Expect(d.Annotations).NotTo(Or(HaveKey(annotation), HaveKey(overshoot.FrozenBecauseAnnotation)))
		w.G.Expect(w.events()).To(Equal([]string{"Normal Unfrozen Machines are created again: a user has requested it"}))
		w.restart()
		w.G.Expect(w.reconcile(d)).To(BeNumerically("~", time.Minute, time.Second), "a period to continue, also after a restart")
		w.clock.Step(time.Minute)
		w.reconcile(d)
		w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot), "then the surplus counts again")
		w.G.Expect(d.Annotations).NotTo(HaveKey(overshoot.UnfrozenAtAnnotation))

		alone := w.set("alone", 1, nil)
		w.label(alone, `"by-me"`)
		w.reconcile(alone)
		w.G.Expect(frozen(alone)).To(Equal("by-me"), "only a user ends what a user has begun")
		w.G.Expect(w.metric(alone)).To(Equal(overshoot.FrozenByLabelReason))
		w.annotate(alone, annotation, `"true"`)
		w.reconcile(alone)
		w.G.Expect(frozen(alone)).To(Equal("none"))
		w.G.Expect(w.metric(alone)).To(BeEmpty())
		w.events()
		w.annotate(alone, annotation, `"true"`)
		w.reconcile(alone)
		w.G.Expect(alone.Annotations).NotTo(HaveKey(annotation))
		w.G.Expect(w.events()).To(BeEmpty(), "nothing was frozen")
	}
}

// TestATimeThatIsToComeHoldsNothingUp: any client can write the annotation.
func TestATimeThatIsToComeHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.annotate(d, overshoot.UnfrozenAtAnnotation, `"2999-01-01T00:00:00Z"`)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
}

// TestALabelThatIsRemoved, as by a GitOps tool or a core with other flags, is set again after a period and not at once, so that the
// two do not write without end.
func TestALabelThatIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	w.reconcile(d)
	w.clock.Step(20 * time.Second)
	w.label(d, "null")
	w.G.Expect(w.reconcile(d)).To(Equal(40 * time.Second))
	w.clock.Step(40 * time.Second)
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
}
