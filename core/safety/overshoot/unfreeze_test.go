package overshoot_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/refuse"
)

// TestUnfreezingASetOfADeployment: what the deployment is decides, whatever label the set has: while that is frozen nothing ends, nothing
// says that it did, and it is said where to ask.
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
		"the set is frozen by somebody, too":  {by, `"by-another"`, overshoot.ByDeployment, "Warning NotUnfrozen"},
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

// TestUnfreezingASetWhoseDeploymentCouldNotBeMarked: the freeze is known to this process alone, and so is that it goes on.
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
