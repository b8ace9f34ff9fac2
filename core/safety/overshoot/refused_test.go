package overshoot_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/refuse"
)

// TestARefusedLabel: what cannot be written holds all the same, and is reported in the words of what refuses it.
func TestARefusedLabel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deployment("d", 0)
	set := w.set("s", 0, d)
	w.machines(set, "a", "b", "c")
	var notified []string
	w.guard.OnChange(func(object client.Object) { notified = append(notified, object.GetName()) })
	isDeployment := func(object client.Object) bool { _, ok := object.(*clusterv1.MachineDeployment); return ok }
	w.refused.Begin(isDeployment, overshoot.FrozenLabel)
	for range 3 {
		_, err := w.try(d)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)), "it is tried again")
	}
	w.G.Expect(frozen(d)).To(Equal("none"))
	condition := w.guard.Condition(d, nil)
	w.G.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
	w.G.Expect(condition.Reason).To(Equal(overshoot.OvershootReason))
	w.G.Expect(condition.Message).To(And(ContainSubstring("3 Machines counted"), ContainSubstring(refuse.Because)))
	w.G.Expect(notified).To(Equal([]string{"d"}))
	w.G.Expect(w.events()).To(ConsistOf(And(HavePrefix("Warning FreezeRefused"), ContainSubstring(refuse.Because))), "once")
	w.G.Expect(w.metric(d)).To(Equal(overshoot.OvershootReason))
	w.machines(set, "d")
	_, err := w.try(d)
	w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	w.G.Expect(w.guard.Condition(d, nil).Message).To(ContainSubstring("4 Machines counted"))
	w.G.Expect(w.events()).To(BeEmpty(), "the numbers are no other refusal")

	w.remove("a", "b", "d")
	w.reconcile(d)
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse), "it ends without a write")
	w.G.Expect(w.metric(d)).To(BeEmpty())

	w.refused.Lift()
	w.label(d, `"overshoot"`)
	w.refused.Begin(isDeployment, "")
	w.events()
	for range 2 {
		_, err := w.try(d)
		w.G.Expect(err).To(MatchError(ContainSubstring(refuse.Because)))
	}
	w.G.Expect(w.guard.Condition(d, nil).Message).To(ContainSubstring("removing the label is refused"))
	w.G.Expect(w.events()).To(ConsistOf(HavePrefix("Warning FreezeRefused")))
	w.refused.Lift()
	w.reconcile(d)
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse))
}

// TestAFreezeThatIsWrittenIsInTheLabelAlone: a user who removes the label is not overruled by what this process remembers.
func TestAFreezeThatIsWrittenIsInTheLabelAlone(t *testing.T) {
	t.Parallel()
	lost := errors.New("the answer is lost")
	failing := true
	w := newWorld(t, func(r *overshoot.Reconciler) {
		r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if err := c.Patch(ctx, object, patch, options...); err != nil || !failing {
					return err
				}
				return lost
			},
		})
	})
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	_, err := w.try(d)
	w.G.Expect(err).To(MatchError(lost))
	failing = false
	w.reconcile(d)
	w.G.Expect(frozen(d)).To(Equal(overshoot.Overshoot))
	w.label(d, "null")
	w.G.Expect(w.guard.Condition(d, nil).Status).To(Equal(metav1.ConditionFalse))
}

// TestALostAnswer: the write took effect, or did not; the next attempt finds what there is.
func TestALostAnswer(t *testing.T) {
	t.Parallel()
	lost := errors.New("the answer is lost")
	for _, effect := range []bool{true, false} {
		failing := true
		w := newWorld(t, func(r *overshoot.Reconciler) {
			r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if !failing || effect {
						if err := c.Patch(ctx, object, patch, options...); err != nil || !failing {
							return err
						}
					}
					return lost
				},
			})
		})
		d := w.deployment("d", 0)
		w.machines(w.set("s", 0, d), "a", "b", "c")
		for _, want := range []string{overshoot.Overshoot, "none"} {
			failing = true
			_, err := w.try(d)
			w.G.Expect(err).To(MatchError(lost))
			w.G.Expect(w.events()).To(BeEmpty(), "no event of what is not known to be done")
			if want == overshoot.Overshoot {
				condition := w.guard.Condition(d, nil)
				w.G.Expect(condition.Status).To(Equal(metav1.ConditionTrue), "nothing is created meanwhile")
				w.G.Expect(strings.Contains(condition.Message, "is not written yet")).To(Equal(!effect))
			}
			failing = false
			w.restart()
			w.reconcile(d)
			w.G.Expect(frozen(d)).To(Equal(want))
			w.remove("a", "b", "c")
			w.events()
		}
	}
}

// TestAListThatHangs holds up nothing else, and concludes nothing.
func TestAListThatHangs(t *testing.T) {
	t.Parallel()
	var hang string
	w := newWorld(t, func(r *overshoot.Reconciler) {
		inner := r.APIReader.(client.WithWatch)
		r.APIReader = interceptor.NewClient(inner, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if (&client.ListOptions{}).ApplyOptions(options).Namespace == hang {
					<-ctx.Done()
					return ctx.Err()
				}
				return c.List(ctx, list, options...)
			},
		})
	})
	d := w.deployment("d", 0)
	w.machines(w.set("s", 0, d), "a", "b", "c")
	hang = w.Namespace
	ctx, cancel := context.WithCancel(w.Ctx)
	ended := make(chan error)
	w.deployments.Came(client.ObjectKeyFromObject(d), w.clock.Now())
	go func() {
		_, err := w.deployments.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
		ended <- err
	}()
	other := newWorld(t)
	other.deployments = w.deployments
	e := other.deployment("e", 0)
	other.machines(other.set("s", 0, e), "a", "b", "c")
	other.reconcile(e)
	w.G.Expect(frozen(e)).To(Equal(overshoot.Overshoot))
	cancel()
	w.G.Expect(<-ended).To(MatchError(context.Canceled))
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	w.G.Expect(frozen(d)).To(Equal("none"))
}
