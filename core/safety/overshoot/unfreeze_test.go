package overshoot_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/refuse"
)

// TestUnfreezingASetOfADeployment: what the deployment is decides, whatever label the set has: while that is frozen nothing ends, nothing
// says that it did, and the message says where to ask.
func TestUnfreezingASetOfADeployment(t *testing.T) {
	t.Parallel()
	const by = `"by-me"`
	for name, test := range map[string]struct {
		// deployment and set are the labels; null is none.
		deployment, set string
		// want is the label of the set after, event what is said.
		want, event string
	}{
		"frozen":                              {by, `"` + overshoot.ByDeployment + `"`, overshoot.ByDeployment, "Warning NotUnfrozen"},
		"frozen, by the core":                 {`"` + overshoot.Overshoot + `"`, `"` + overshoot.ByDeployment + `"`, overshoot.ByDeployment, "Warning NotUnfrozen"},
		"the label was taken from the set":    {by, "null", "none", "Warning NotUnfrozen"},
		"the set is frozen by a user, too":    {by, `"by-another"`, overshoot.ByDeployment, "Warning NotUnfrozen"},
		"the set alone is frozen":             {"null", by, "none", "Normal Unfrozen"},
		"it was, and the set is still marked": {"null", `"` + overshoot.ByDeployment + `"`, "none", "Normal Unfrozen"},
		"nothing is":                          {"null", "null", "none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.deployment("d", 1)
			s := w.set("s", 1, d)
			w.label(d, test.deployment)
			w.label(s, test.set)
			w.restart()
			w.annotate(s, overshoot.UnfreezeAnnotation, `""`)
			w.reconcile(s)
			w.G.Expect(frozen(s)).To(Equal(test.want))
			w.G.Expect(s.Annotations).NotTo(Or(HaveKey(overshoot.UnfreezeAnnotation), HaveKey(overshoot.UnfrozenAtAnnotation)))
			if test.event == "" {
				w.G.Expect(w.events()).To(BeEmpty())
				return
			}
			w.G.Expect(w.events()).To(ConsistOf(HavePrefix(test.event)))
		})
	}
}

// TestUnfreezingASetWhoseDeploymentCouldNotBeMarked: the freeze is known to this process alone, and so is that it continues.
func TestUnfreezingASetWhoseDeploymentCouldNotBeMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	s := w.set("s", 0, d)
	w.machines(s, "a", "b", "c")
	w.refused.Begin(func(object client.Object) bool { _, ok := object.(*clusterv1.MachineDeployment); return ok }, overshoot.FrozenLabel)
	_, err := w.try(d)
	w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	w.events()
	w.annotate(s, overshoot.MCMUnfreezeAnnotation, `""`)
	w.reconcile(s)
	w.G.Expect(s.Annotations).NotTo(HaveKey(overshoot.MCMUnfreezeAnnotation))
	w.G.Expect(w.events()).To(ConsistOf(And(HavePrefix("Warning NotUnfrozen"), ContainSubstring("MachineDeployment d"))))
	w.G.Expect(w.guard.Condition(s, d)).To(HaveField("Reason", overshoot.OvershootReason))
}

// TestUnfreezingASetWhoseDeploymentIsNotSeen: the API server knows more than the cache; without a deployment the set is its own; and what
// cannot be read ends nothing.
func TestUnfreezingASetWhoseDeploymentIsNotSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 1)
	s := w.set("s", 1, d)
	w.label(d, `"by-me"`)
	w.label(s, `"`+overshoot.ByDeployment+`"`)
	w.annotate(s, overshoot.UnfreezeAnnotation, `""`)
	reads := w.sets.APIReader
	broken := errors.New("connection refused")
	blind := func(err error) client.Client {
		return interceptor.NewClient(w.sets.Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, ok := object.(*clusterv1.MachineDeployment); ok {
					if err != nil {
						return err
					}
					key.Name = "unseen"
				}
				return c.Get(ctx, key, object, options...)
			},
		})
	}
	sees := w.sets.Client
	w.sets.Client = blind(broken)
	_, err := w.try(s)
	w.G.Expect(err).To(MatchError(broken))
	w.G.Expect(frozen(s)).To(Equal(overshoot.ByDeployment))
	w.sets.Client = sees
	w.sets.Client, w.sets.APIReader = blind(nil), reads
	w.reconcile(s)
	w.G.Expect(w.events()).To(ConsistOf(HavePrefix("Warning NotUnfrozen")))

	w.annotate(s, overshoot.UnfreezeAnnotation, `""`)
	w.G.Expect(direct.Delete(w.Ctx, d)).To(Succeed())
	w.reconcile(s)
	w.G.Expect(frozen(s)).To(Equal("none"))
	w.G.Expect(w.events()).To(ConsistOf(HavePrefix("Normal Unfrozen")))
}

// TestARefusedUnfreeze: a policy refuses that the annotation is removed. What is frozen stays so and reports why, once by an event; if the
// user removes the annotation, the condition no longer mentions it.
func TestARefusedUnfreeze(t *testing.T) {
	t.Parallel()
	for name, annotation := range map[string]string{"ours": overshoot.UnfreezeAnnotation, "of MCM": overshoot.MCMUnfreezeAnnotation} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.deployment("d", 1)
			w.label(d, `"by-me"`)
			w.annotate(d, annotation, `""`)
			w.refused.Begin(isDeployment, "")
			for range 3 {
				_, err := w.try(d)
				w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)), "it is tried again")
			}
			condition := w.guard.Condition(d, nil)
			w.G.Expect(condition.Reason).To(Equal(overshoot.FrozenByLabelReason))
			w.G.Expect(condition.Message).To(And(ContainSubstring("removing the label is refused"), ContainSubstring(refuse.Because)))
			w.G.Expect(w.metric(d)).To(Equal(overshoot.FrozenByLabelReason))
			w.G.Expect(w.events()).To(ConsistOf(And(HavePrefix("Warning FreezeRefused"), ContainSubstring(refuse.Because))), "once")

			w.annotate(d, annotation, "null")
			w.reconcile(d)
			w.G.Expect(w.guard.Condition(d, nil).Message).NotTo(ContainSubstring("refused"), "the request is gone")
			w.G.Expect(w.guard.Condition(d, nil).Reason).To(Equal(overshoot.FrozenByLabelReason))
			w.G.Expect(w.events()).To(BeEmpty())
		})
	}
}

// TestAnEndThatWasRefusedAndIsNotWantedAnyMore: there are too many again before the label could be removed.
func TestAnEndThatWasRefusedAndIsNotWantedAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	s := w.set("s", 0, d)
	w.label(d, `"`+overshoot.Overshoot+`"`)
	w.refused.Begin(isDeployment, "")
	_, err := w.try(d)
	w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	w.G.Expect(w.guard.Condition(d, nil).Message).To(ContainSubstring("removing the label is refused"))
	w.machines(s, "a", "b", "c")
	w.reconcile(d)
	w.G.Expect(w.guard.Condition(d, nil).Reason).To(Equal(overshoot.OvershootReason))
	w.G.Expect(w.guard.Condition(d, nil).Message).NotTo(ContainSubstring("refused"))
}

// TestAnAnnotationThatCannotBeTakenAway turns nothing off: Machines are counted all the same, creation stops although no label can be
// written, and continues when few enough are left. Nothing says before that something was frozen.
func TestAnAnnotationThatCannotBeTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	s := w.set("s", 0, d)
	w.annotate(d, overshoot.UnfreezeAnnotation, `""`)
	w.refused.Begin(isDeployment, "")
	for range 2 {
		_, err := w.try(d)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	}
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse))
	w.G.Expect(w.events()).To(ConsistOf(And(HavePrefix("Warning FreezeRefused Nothing is frozen"), ContainSubstring(refuse.Because))))

	w.machines(s, "a", "b", "c")
	for range 3 {
		_, err := w.try(d)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	}
	w.G.Expect(w.guard.Condition(s, d).Reason).To(Equal(overshoot.OvershootReason))
	w.G.Expect(w.metric(d)).To(Equal(overshoot.OvershootReason))
	w.G.Expect(len(w.events())).To(BeNumerically("<=", 2), "that it begins, and that it cannot be ended, once each")
	w.remove("a", "b", "c")
	_, err := w.try(d)
	w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	w.G.Expect(w.guard.Condition(s, d).Status).To(Equal(metav1.ConditionFalse))
	w.G.Expect(w.metric(d)).To(BeEmpty())
}

// TestASetWhoseRequestCannotBeTakenAway says so, and where to ask, once.
func TestASetWhoseRequestCannotBeTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 1)
	s := w.set("s", 1, d)
	w.label(d, `"by-me"`)
	w.annotate(s, overshoot.UnfreezeAnnotation, `""`)
	w.refused.Begin(func(object client.Object) bool { return !isDeployment(object) }, "")
	for range 3 {
		_, err := w.try(s)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	}
	w.G.Expect(w.events()).
		To(ConsistOf(And(HavePrefix("Warning NotUnfrozen MachineDeployment d is frozen"), ContainSubstring(refuse.Because))))
	w.refused.Lift()
	w.reconcile(s)
	w.G.Expect(s.Annotations).NotTo(HaveKey(overshoot.UnfreezeAnnotation))
}

func isDeployment(object client.Object) bool {
	_, ok := object.(*clusterv1.MachineDeployment)
	return ok
}
