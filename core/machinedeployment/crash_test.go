package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var errCrash = errors.New("the process has crashed")

// crash fails everything from a certain write of a MachineSet, or of what counts otherwise, on, as if the process
// had ended: before the write takes effect, or after that and before the answer is read. Writes of the status do
// not count.
type crash struct {
	counts  func(client.Object) bool
	mu      sync.Mutex
	at      int
	after   bool
	writes  int
	crashed chan struct{}
}

func newCrash(counts func(client.Object) bool, at int, after bool) *crash {
	return &crash{counts: counts, at: at, after: after, crashed: make(chan struct{})}
}

func isSet(object client.Object) bool {
	_, ok := object.(*clusterv1.MachineSet)
	return ok
}

func (c *crash) do(object client.Object, write func() error) error {
	c.mu.Lock()
	number := 0
	if c.counts(object) {
		c.writes++
		if number = c.writes; number == c.at {
			close(c.crashed)
		}
	}
	dead := c.writes > c.at || (c.writes == c.at && number == 0)
	c.mu.Unlock()
	switch {
	case dead:
		return errCrash
	case number != c.at:
		return write()
	case c.after:
		_ = write()
	}
	return errCrash
}

func (c *crash) wrap(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return c.do(object, func() error { return w.Create(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return c.do(object, func() error { return w.Delete(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return c.do(object, func() error { return w.Patch(ctx, object, patch, options...) })
		},
	})
}

// TestCrashWhileRollingOut ends the process at each write of a set in turn, from the first set to the deletion
// of the last outdated one. Whatever happens, one set and its Machines are left in the end, and no Machine more
// than the surge allows has existed in between.
func TestCrashWhileRollingOut(t *testing.T) {
	t.Parallel()
	crashAtEach(t, isSet, rollOutWithCrash)
}

// crashAtEach runs a test with a crash at each write that counts in turn, before its effect and, beside that, after it, until there is
// no write left at which the process could end.
func crashAtEach(t *testing.T, counts func(client.Object) bool, test func(*testing.T, *crash) (crashed bool)) {
	t.Helper()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after its effect: %t", after), func(t *testing.T) {
			t.Parallel()
			crashed := true
			for at := 1; crashed; at++ {
				crashed = t.Run(fmt.Sprintf("write %d", at), func(t *testing.T) {
					crashed = test(t, newCrash(counts, at, after))
				}) && crashed
			}
		})
	}
}

func rollOutWithCrash(t *testing.T, c *crash) (crashed bool) {
	t.Helper()
	w := newWorld(t)
	w.deployment(2)
	w.start(t, c.wrap)
	restart := func() {
		crashed = true
		w.Stop()
		w.start(t)
	}
	onTemplate := func(name string) func(Gomega) {
		return func(g Gomega) {
			if !crashed {
				select {
				case <-c.crashed:
					restart()
				default:
				}
			}
			w.running(2)(g)
			g.Expect(w.listSets()[0].Spec.Template.Spec.InfrastructureRef.Name).To(Equal(name))
		}
	}
	w.Eventually(onTemplate("a"))
	stop := w.watchNumbers(3, 2)
	w.update(toTemplateB)
	w.Eventually(onTemplate("b"))
	stop()
	return crashed
}
