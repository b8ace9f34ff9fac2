package machineset

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

// late loses the answer to the first creation of a Machine, whose effect comes later: at the latest just before the next
// creation, after the API server was asked what there is.
type late struct {
	mu   sync.Mutex
	kept *clusterv1.Machine
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
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.killed && l.lost {
				return workers.ErrCrash
			}
			machine, ok := object.(*clusterv1.Machine)
			if !ok {
				return c.Create(ctx, object, options...)
			}
			if !l.lost {
				l.lost, l.kept = true, machine.DeepCopy()
				close(l.died)
				return io.ErrUnexpectedEOF
			}
			return l.create(ctx, c, object)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.killed && l.lost {
				return workers.ErrCrash
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}

// next is for the process after the one that was killed.
func (l *late) next(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, ok := object.(*clusterv1.Machine); !ok {
				return c.Create(ctx, object, options...)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.create(ctx, c, object)
		},
	})
}

// create creates a Machine, and before it the one whose creation is late. It is called under mu.
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

// TestCreationThatTakesEffectLate: what may still come is not created again under another name.
func TestCreationThatTakesEffectLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(3)
	l := &late{died: make(chan struct{})}
	w.start(t, l.wrap)
	w.Eventually(w.settled(3))
	w.Stop()
	w.G.Expect(l.created).To(Equal(3), "never one too many")
}

// TestLateCreationOfAKilledProcess: the next process creates its Machines under the names that the one before has
// reserved, so that a creation of that one makes no Machine too many, whenever it takes effect.
func TestLateCreationOfAKilledProcess(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the next process creates Machines": false, "after it has": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.set(3)
			l := &late{died: make(chan struct{}), killed: true, wait: after}
			w.start(t, l.wrap)
			w.Eventually(func(g Gomega) { g.Expect(l.died).To(BeClosed()) })
			w.Stop()
			w.start(t, l.next)
			w.Eventually(w.settled(3))
			if after {
				w.G.Expect(l.takeEffect(w.Ctx, direct)).To(Satisfy(apierrors.IsAlreadyExists))
			}
			w.Stop()
			w.G.Expect(l.created).To(Equal(3), "never one too many")
			w.G.Expect(w.Machines()).To(HaveLen(3))
		})
	}
}
