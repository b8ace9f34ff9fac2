package machineset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var errCrash = errors.New("the process has crashed")

// crash lets a number of writes through and then fails everything, as if the process had ended: either before
// the write takes effect, or after that and before the answer is read.
type crash struct {
	mu sync.Mutex
	// at is the number of the write that crashes, counted from one; after means after its effect.
	at    int
	after bool
	// writes counts them; crashed is closed at the crash.
	writes  int
	crashed chan struct{}
}

func newCrash(at int, after bool) *crash {
	return &crash{at: at, after: after, crashed: make(chan struct{})}
}

// do counts a write and says what becomes of it.
func (c *crash) do(write func() error) error {
	c.mu.Lock()
	c.writes++
	number := c.writes
	if number == c.at {
		close(c.crashed)
	}
	c.mu.Unlock()
	switch {
	case number < c.at:
		return write()
	case number == c.at && c.after:
		_ = write()
	}
	return errCrash
}

func (c *crash) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return c.do(func() error { return w.Create(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return c.do(func() error { return w.Delete(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return c.do(func() error { return w.Patch(ctx, object, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return c.do(func() error { return w.SubResource(sub).Patch(ctx, object, patch, options...) })
		},
	})
}

// crashes runs a test for each write of the reconciler and for both moments, until one run needs fewer writes
// than it was to crash at.
func crashes(t *testing.T, run func(t *testing.T, c *crash) (crashed bool)) {
	t.Helper()
	// Most of the time is waiting.
	t.Parallel()
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			more := false
			t.Run(fmt.Sprintf("write %d, after its effect: %t", at, after), func(t *testing.T) {
				more = run(t, newCrash(at, after))
			})
			if !more || t.Failed() {
				break
			}
			if at > 100 {
				t.Fatal("the reconciler writes without end")
			}
		}
	}
}

// untilCrashOr waits until the crash has happened or the goal is reached, and reports whether it was the crash.
func (w *world) untilCrashOr(c *crash, goal func(Gomega)) bool {
	crashed := false
	w.Eventually(func(g Gomega) {
		select {
		case <-c.crashed:
			crashed = true
		default:
			goal(g)
		}
	})
	return crashed
}

func TestCrashWhileScalingUp(t *testing.T) {
	crashes(t, func(t *testing.T, c *crash) bool {
		w := newWorld(t)
		w.set(3)
		w.start(t, c.wrap)
		crashed := w.untilCrashOr(c, func(g Gomega) {
			w.complete(3)(g)
			g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(3)))
		})
		w.Stop()
		w.start(t)
		w.Eventually(w.settled(3))
		return crashed
	})
}

func TestCrashWhileScalingDown(t *testing.T) {
	crashes(t, func(t *testing.T, c *crash) bool {
		w := newWorld(t)
		w.set(4)
		w.start(t)
		w.Eventually(w.settled(4))
		w.Stop()
		w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
		w.start(t, c.wrap)
		crashed := w.untilCrashOr(c, func(g Gomega) {
			g.Expect(w.living()).To(HaveLen(2))
			g.Expect(w.current().Status.ObservedGeneration).To(Equal(w.current().Generation))
		})
		w.Stop()
		w.start(t)
		w.Eventually(func(g Gomega) {
			g.Expect(w.living()).To(HaveLen(2))
			g.Expect(w.Machines()).To(HaveLen(4), "none has gone yet")
		})
		w.Eventually(func(g Gomega) {
			w.endMachines()
			w.settled(2)(g)
		})
		return crashed
	})
}

// settled is complete, and the status says so of this generation: the reconciler has looked and was content.
func (w *world) settled(n int) func(Gomega) {
	return func(g Gomega) {
		w.complete(n)(g)
		set := w.current()
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect(set.Status.Replicas).To(HaveValue(BeEquivalentTo(n)))
	}
}

// living are the Machines that are not being deleted.
func (w *world) living() []clusterv1.Machine {
	var living []clusterv1.Machine
	for _, machine := range w.Machines() {
		if machine.DeletionTimestamp.IsZero() {
			living = append(living, machine)
		}
	}
	return living
}

// TestConflictStorm lets every second patch and delete fail as if someone else had written in between, and every
// third creation fail in one of several ways.
func TestConflictStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(5)
	storm := &storm{}
	w.start(t, storm.wrap)
	w.Eventually(w.settled(5))
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
	w.Eventually(func(g Gomega) {
		w.endMachines()
		w.settled(2)(g)
	})
	w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](4) })
	w.Eventually(w.settled(4))
	w.Stop() // It counts no more.
	w.G.Expect(storm.failed).To(BeNumerically(">", 5), "the storm was one")
}

type storm struct {
	mu              sync.Mutex
	writes, creates int
	failed          int
}

func (s *storm) fails(creation bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource := schema.GroupResource{Group: "g", Resource: "r"}
	if creation {
		s.creates++
		if s.creates%3 == 0 {
			s.failed++
			return []error{
				apierrors.NewTooManyRequests("slow down", 1), apierrors.NewInternalError(errCrash), errCrash,
				apierrors.NewTimeoutError("late", 1),
			}[s.creates/3%4]
		}
		return nil
	}
	s.writes++
	if s.writes%2 == 0 {
		s.failed++
		return apierrors.NewConflict(resource, "n", errCrash)
	}
	return nil
}

func (s *storm) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := s.fails(true); err != nil {
				if errors.Is(err, errCrash) {
					// It takes effect, and nobody learns of it.
					_ = w.Create(ctx, object.DeepCopyObject().(client.Object), options...)
				}
				return err
			}
			return w.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := s.fails(false); err != nil {
				return err
			}
			return w.Delete(ctx, object, options...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := s.fails(false); err != nil {
				return err
			}
			return w.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := s.fails(false); err != nil {
				return err
			}
			return w.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}
