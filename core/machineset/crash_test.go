package machineset

import (
	"context"
	"errors"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/test/coretest/workers"
)

// crashes runs a scenario until the reconciler has crashed at each of its writes, before its effect and after it. Alone is a write that is
// the only one of a run to be crashed at, and want is how many writes of each sort are crashed at, at least.
func crashes(t *testing.T, alone string, want map[string]int, scenario func(t *testing.T, c *workers.Crash)) {
	t.Helper()
	// Most of the time is waiting.
	t.Parallel()
	all := workers.Crashes{Counts: func(string) bool { return true }, Alone: alone, Want: want}
	for _, after := range []bool{false, true} {
		all.Run(t, after, scenario)
	}
}

// survive starts reconcilers that crash, as many as it takes until the goal is reached.
func (w *world) survive(t *testing.T, c *workers.Crash, goal func(Gomega)) {
	t.Helper()
	w.Survive(c, func(wrap ...func(client.WithWatch) client.Client) { w.start(t, wrap...) }, goal)
}

func TestCrashWhileScalingUp(t *testing.T) {
	want := map[string]int{
		"create Machine": 3, "create MachineV1Beta2": 3, "create ConfigV1Beta2": 3, "patch MachineSet": 2, "patch MachineV1Beta2Template": 1,
		"patch ConfigV1Beta2Template": 1, "patch status of MachineSet": 1,
	}
	crashes(t, "create Machine 2", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		w.set(3)
		w.survive(t, c, func(g Gomega) {
			w.complete(3)(g)
			g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(3)))
		})
		w.Eventually(w.settled(3))
	})
}

func TestCrashWhileScalingDown(t *testing.T) {
	want := map[string]int{
		"delete Machine": 2, "patch MachineSet": 1, "patch status of MachineSet": 1,
	}
	crashes(t, "delete Machine 1", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		w.set(4)
		w.start(t)
		w.Eventually(w.settled(4))
		w.Stop()
		w.update(func(set *clusterv1.MachineSet) { set.Spec.Replicas = ptr.To[int32](2) })
		w.survive(t, c, func(g Gomega) {
			g.Expect(w.living()).To(HaveLen(2))
			g.Expect(w.current().Status.ObservedGeneration).To(Equal(w.current().Generation))
		})
		w.Eventually(func(g Gomega) {
			g.Expect(w.living()).To(HaveLen(2))
			g.Expect(w.Machines()).To(HaveLen(4), "none has gone yet")
		})
		w.Eventually(func(g Gomega) {
			w.endMachines()
			w.settled(2)(g)
		})
	})
}

// settled is complete, and its status reports that for this generation: the reconciler has nothing left to do.
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

// TestConflictStorm lets every second patch and delete fail as if another writer had been faster, and every
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
				apierrors.NewTooManyRequests("slow down", 1), apierrors.NewInternalError(workers.ErrCrash), workers.ErrCrash,
				apierrors.NewTimeoutError("late", 1),
			}[s.creates/3%4]
		}
		return nil
	}
	s.writes++
	if s.writes%2 == 0 {
		s.failed++
		return apierrors.NewConflict(resource, "n", workers.ErrCrash)
	}
	return nil
}

func (s *storm) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := s.fails(true); err != nil {
				if errors.Is(err, workers.ErrCrash) {
					// It takes effect, but the answer is lost.
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
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			if err := s.fails(false); err != nil {
				return err
			}
			return w.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}
