package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// runs are those of a suite that share a cluster.
func runs(t *testing.T, patch func() error) (make func(suite, id, namespace string) Run, said *[]string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := patch(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
	}).Build()
	said = &[]string{}
	return func(suite, id, namespace string) Run {
		return Run{Client: c, Suite: suite, ID: id, Namespace: namespace, Logf: func(format string, args ...any) {
			*said = append(*said, fmt.Sprintf(format, args...))
		}}
	}, said
}

// states are the IDs of other runs that are alive, and of those that are dead.
func states(t *testing.T, of Run) string {
	t.Helper()
	alive, dead, err := of.Others(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for id := range alive {
		found = append(found, id+" alive")
	}
	for _, lease := range dead {
		found = append(found, lease.Labels[Label]+" dead")
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// A run is alive as long as it renews its Lease, also when its context has ended, since it cleans up then, and dead five minutes after.
func TestARunIsAliveUntilItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewals atomic.Int64
		run, said := runs(t, func() error { renewals.Add(1); return nil })
		ctx, cancel := context.WithCancel(t.Context())
		stop, err := run("core", "one", "a").Live(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Hour)
		other := run("core", "two", "b")
		if got := states(t, other); got != "one alive" || renewals.Load() < 300 {
			t.Errorf("after an hour: %q, %d renewals", got, renewals.Load())
		}
		stop()
		before := renewals.Load()
		time.Sleep(DeadAfter - renewEvery)
		if got := states(t, other); got != "one alive" {
			t.Errorf("before its time is over: %q", got)
		}
		time.Sleep(2 * renewEvery)
		if got := states(t, other); got != "one dead" || renewals.Load() != before || len(*said) > 0 {
			t.Errorf("after it: %q, %d renewals since it stopped; said %q", got, renewals.Load()-before, *said)
		}
		if got := states(t, run("provider", "three", "b")); got != "" {
			t.Errorf("to a run of another suite: %q", got)
		}
		other.Within = "b"
		if got := states(t, other); got != "" {
			t.Errorf("to one that looks in another namespace: %q", got)
		}
	})
}

// A renewal that is refused is said, and tried again.
func TestARefusedRenewalIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused, away := errors.New("the API server is away"), atomic.Bool{}
		away.Store(true)
		run, said := runs(t, func() error {
			if away.Load() {
				return refused
			}
			return nil
		})
		stop, err := run("core", "one", "a").Live(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		time.Sleep(2*renewEvery + time.Second)
		synctest.Wait()
		if len(*said) != 2 || !strings.Contains((*said)[0], refused.Error()) {
			t.Errorf("said %q", *said)
		}
		away.Store(false)
		time.Sleep(DeadAfter + time.Minute)
		if got := states(t, run("core", "two", "b")); got != "one alive" {
			t.Errorf("after the API server is back: %q", got)
		}
	})
}
