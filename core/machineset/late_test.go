package machineset

import (
	"context"
	"io"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// late loses the answer to the first creation of a Machine, whose effect then comes after the API server was asked what
// there is, and just before the next creation.
type late struct {
	mu   sync.Mutex
	kept *clusterv1.Machine
	lost bool
}

func (l *late) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			machine, ok := object.(*clusterv1.Machine)
			if !ok {
				return c.Create(ctx, object, options...)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if !l.lost {
				l.lost, l.kept = true, machine.DeepCopy()
				return io.ErrUnexpectedEOF
			}
			if kept := l.kept; kept != nil {
				l.kept = nil
				if err := c.Create(ctx, kept); err != nil {
					return err
				}
			}
			return c.Create(ctx, object, options...)
		},
	})
}

// TestCreationThatTakesEffectLate: what may still come is not made again under another name.
func TestCreationThatTakesEffectLate(t *testing.T) {
	w := newWorld(t)
	w.set(3)
	var most int
	w.start(t, (&late{}).wrap)
	w.eventually(func(g Gomega) {
		most = max(most, len(w.machines()))
		w.complete(3)(g)
	})
	w.g.Expect(most).To(Equal(3), "never one too many")
}
