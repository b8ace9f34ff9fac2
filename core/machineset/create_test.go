package machineset

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/controller/persist"
	. "millwright.dev/test/coretest/builder"
	"millwright.dev/test/coretest/workers"
)

// TestSlowStart: what cannot work costs one request, and not one for each Machine; what fails later costs no more
// than the batch under way.
func TestSlowStart(t *testing.T) {
	tests := map[string]struct {
		// works is how many creations of Machines succeed; -1 for all.
		works          int32
		asked, created int32
	}{
		"never works":        {works: 0, asked: 1, created: 0},
		"fails in the third": {works: 5, asked: 7, created: 5},
		"always works":       {works: -1, asked: 100, created: 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var asked atomic.Int32
			r := &Reconciler{newSeed: func() string { return "bcdfg" }, Clock: clocktesting.NewFakeClock(Epoch), Written: &persist.Versions{}}
			set := validSet()
			r.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(workers.Scheme()).WithObjects(set).Build(), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
					if _, ok := object.(*clusterv1.Machine); ok {
						if number := asked.Add(1); test.works >= 0 && number > test.works {
							return errors.New("no more")
						}
					}
					return c.Create(ctx, object, options...)
				},
			})
			infrastructure := &unstructured.Unstructured{
				Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}},
			}
			infrastructure.SetGroupVersionKind(schema.GroupVersionKind{Group: "i", Version: "v1", Kind: "XTemplate"})
			g.Expect(r.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set)).To(Succeed())
			s := r.newScope(set)
			s.infrastructure = infrastructure
			made, err := r.create(t.Context(), s, 100)
			g.Expect(err != nil).To(Equal(test.works >= 0))
			g.Expect(s.blockers).To(BeEmpty())
			g.Expect(asked.Load()).To(Equal(test.asked))
			g.Expect(made).To(HaveLen(int(test.created)))
		})
	}
}
