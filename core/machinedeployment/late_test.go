package machinedeployment

import (
	"context"
	"io"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/test/coretest/workers"
)

// late loses the answer to the first creation of a set, whose effect comes later: just before the next creation, after the
// API server was asked what there is.
type late struct {
	mu   sync.Mutex
	kept *clusterv1.MachineSet
	lost bool
	// killed has the process end with the lost answer: no later write of it has an effect.
	killed bool
	died   chan struct{}
	// created counts the creations that had an effect.
	created int
	// wait keeps the effect back until takeEffect.
	wait bool
}

func (l *late) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return l.unlessDead(func() error {
				set, ok := object.(*clusterv1.MachineSet)
				if !ok {
					return c.Create(ctx, object, options...)
				}
				if !l.lost {
					l.lost, l.kept = true, set.DeepCopy()
					close(l.died)
					return io.ErrUnexpectedEOF
				}
				return l.create(ctx, c, set)
			})
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return l.unlessDead(func() error { return c.Patch(ctx, object, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			return l.unlessDead(func() error { return c.SubResource(sub).Patch(ctx, object, patch, options...) })
		},
	})
}

func (l *late) unlessDead(write func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killed && l.lost {
		return workers.ErrCrash
	}
	return write()
}

// next is for the process after the one that was killed.
func (l *late) next(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if !isSet(object) {
				return c.Create(ctx, object, options...)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.create(ctx, c, object)
		},
	})
}

// create creates a set, and before it the one whose creation is late. It is called under mu.
func (l *late) create(ctx context.Context, c client.Client, object client.Object) error {
	if !l.wait {
		if err := l.takeEffect(ctx, c); err != nil {
			return err
		}
	}
	err := c.Create(ctx, object)
	if err == nil {
		l.created++
	}
	return err
}

// takeEffect is what the creation that was kept back comes to.
func (l *late) takeEffect(ctx context.Context, c client.Client) error {
	kept := l.kept
	l.kept = nil
	if kept == nil {
		return nil
	}
	err := c.Create(ctx, kept)
	if err == nil {
		l.created++
	}
	return err
}

// TestSetWhoseCreationTakesEffectLate: a set that may still come is not created again under another name, be it the first
// one or that of a rollout.
func TestSetWhoseCreationTakesEffectLate(t *testing.T) {
	t.Parallel()
	t.Run("the first set", func(t *testing.T) {
		w := newWorld(t)
		w.deployment(3)
		l := &late{died: make(chan struct{})}
		stop := w.watchNumbers(3, 0)
		w.start(t, l.wrap)
		w.Eventually(w.settled(3, "a", "1"))
		stop()
		w.Stop()
		w.G.Expect(l.created).To(Equal(1), "never one too many")
		w.G.Expect(w.allSets()).To(HaveLen(1))
	})
	t.Run("the set of a rollout", func(t *testing.T) {
		w := newWorld(t)
		w.deployment(3)
		w.start(t)
		w.Eventually(w.settled(3, "a", "1"))
		w.Stop()
		l := &late{died: make(chan struct{})}
		stop := w.watchNumbers(3+1, 3)
		w.start(t, l.wrap)
		w.update(toTemplateB)
		w.Eventually(w.settled(3, "b", "2"))
		stop()
		w.Stop()
		w.G.Expect(l.created).To(Equal(1), "never one too many")
		w.G.Expect(w.allSets()).To(HaveLen(2))
	})
}

// TestLateSetOfAKilledProcess: the next process creates its set under the name that the one before has used, so that a
// creation of that one makes no set too many, whenever it takes effect.
func TestLateSetOfAKilledProcess(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the next process creates one": false, "after it has": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deployment(3)
			l := &late{died: make(chan struct{}), killed: true, wait: after}
			stop := w.watchNumbers(3, 0)
			w.start(t, l.wrap)
			w.Eventually(func(g Gomega) { g.Expect(l.died).To(BeClosed()) })
			w.Stop()
			w.start(t, l.next)
			w.Eventually(w.settled(3, "a", "1"))
			if after {
				w.G.Expect(l.takeEffect(w.Ctx, direct)).To(Satisfy(apierrors.IsAlreadyExists))
			}
			stop()
			w.Stop()
			w.G.Expect(l.created).To(Equal(1), "never one too many")
			w.G.Expect(w.allSets()).To(HaveLen(1))
		})
	}
}

// TestLateSetOfATemplateBefore changes the template before the creation takes effect: both sets are of one revision, and so
// of one name. Otherwise each would get all replicas.
func TestLateSetOfATemplateBefore(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the next process creates one": false, "after it has": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deployment(3)
			l := &late{died: make(chan struct{}), killed: true, wait: after}
			stop := w.watchNumbers(3+1, 0)
			w.start(t, l.wrap)
			w.Eventually(func(g Gomega) { g.Expect(l.died).To(BeClosed()) })
			w.Stop()
			w.update(toTemplateB)
			w.start(t, l.next)
			sets, revision := 2, "2"
			if after {
				sets, revision = 1, "1"
			}
			w.Eventually(w.settled(3, "b", revision))
			if after {
				w.G.Expect(l.takeEffect(w.Ctx, direct)).To(Satisfy(apierrors.IsAlreadyExists))
			}
			stop()
			w.Stop()
			w.G.Expect(l.created).To(Equal(sets))
			w.G.Expect(w.allSets()).To(HaveLen(sets))
		})
	}
}

// TestLateSetHasNoMachines: the creation of the set for template c takes effect when its revision belongs to another set and
// its name is no longer in use, since the deployment has gone back to a and then on to d. It comes without replicas.
func TestLateSetHasNoMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := func(name string) func(*clusterv1.MachineDeployment) {
		return func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = name }
	}
	for _, name := range []string{"c", "d"} {
		w.Create(w.Template(workers.InfraTemplateKind, name))
	}
	w.deployment(3)
	w.start(t)
	w.Eventually(w.settled(3, "a", "1"))
	w.update(to("b"))
	w.Eventually(w.settled(3, "b", "2"))
	w.Stop()
	l := &late{died: make(chan struct{}), killed: true, wait: true}
	w.start(t, l.wrap)
	w.update(to("c"))
	w.Eventually(func(g Gomega) { g.Expect(l.died).To(BeClosed()) })
	w.Stop()
	w.update(to("a"))
	w.start(t, l.next)
	w.Eventually(w.settled(3, "a", "3"))
	w.update(to("d"))
	w.Eventually(w.settled(3, "d", "4"))

	set := l.kept
	w.G.Expect(set.Spec.Replicas).To(HaveValue(BeZero()), "whichever controller is quicker")
	stop := w.watchNumbers(3, 3)
	w.G.Expect(l.takeEffect(w.Ctx, direct)).To(Succeed())
	w.Eventually(func(g Gomega) {
		err := direct.Get(w.Ctx, client.ObjectKeyFromObject(set), set)
		if apierrors.IsNotFound(err) {
			return // It was reconciled, and deleted with the outdated sets.
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(set.Status.ObservedGeneration).NotTo(BeZero(), "its controller has looked at it")
		g.Expect(set.Status.Replicas).To(HaveValue(BeZero()))
	})
	stop()
	w.Eventually(w.settled(3, "d", "4"))
}
