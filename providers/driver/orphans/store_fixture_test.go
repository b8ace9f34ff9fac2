package orphans

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/providers/driver"
)

// storeFixture is an API server with nothing but the record, and a process that writes it.
type storeFixture struct {
	*WithT
	t      *testing.T
	clock  *clocktesting.FakeClock
	api    client.WithWatch
	faults interceptor.Funcs
	client client.WithWatch
	store  *Store
}

func newStoreFixture(t *testing.T) *storeFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	g := NewWithT(t)
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	f := &storeFixture{WithT: g, t: t, clock: clocktesting.NewFakeClock(testStart)}
	f.api = fake.NewClientBuilder().WithScheme(scheme).Build()
	f.process()
	return f
}

// process starts a new process.
func (f *storeFixture) process() {
	f.client = interceptor.NewClient(f.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if f.faults.Get != nil {
				return f.faults.Get(ctx, c, key, obj, opts...)
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if f.faults.Create != nil {
				return f.faults.Create(ctx, c, obj, opts...)
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if f.faults.Update != nil {
				return f.faults.Update(ctx, c, obj, opts...)
			}
			return c.Update(ctx, obj, opts...)
		},
	})
	f.store = NewStore(f.client, f.client, f.clock, testKey)
}

func (f *storeFixture) begin() {
	f.t.Helper()
	f.Expect(f.store.Begin(f.t.Context())).To(Succeed())
}

// mark returns the mark of a launch.
func (f *storeFixture) mark() driver.Lineage {
	f.t.Helper()
	text, err := f.store.Mark("cluster", testScope)
	f.Expect(err).NotTo(HaveOccurred())
	l, ok := driver.ParseLineage(text)
	f.Expect(ok).To(BeTrue())
	return l
}

// scan is a checkpoint after a while.
func (f *storeFixture) scan() (Record, error) {
	f.clock.Step(15 * time.Minute)
	return f.store.Checkpoint(f.t.Context(), f.clock.Now(), []driver.Scope{testScope}, nil)
}

// state is what a backup has of the record; restore puts it back.
func (f *storeFixture) state() map[string]string {
	f.t.Helper()
	stored := &corev1.ConfigMap{}
	f.Expect(f.api.Get(f.t.Context(), testKey, stored)).To(Succeed())
	return stored.Data
}

func (f *storeFixture) restore(data map[string]string) {
	f.t.Helper()
	stored := &corev1.ConfigMap{}
	f.Expect(f.api.Get(f.t.Context(), testKey, stored)).To(Succeed())
	stored.Data = data
	f.Expect(f.api.Update(f.t.Context(), stored)).To(Succeed())
}

func covered(r Record, l driver.Lineage) bool {
	return l.Installation == r.Installation && r.covers(l.At)
}
