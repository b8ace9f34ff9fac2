package machine

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/core/index"
)

// TestTheEndOfAControlPlaneWakesThoseThatWaitForIt: a Machine that is being deleted waits for a target cluster that does not answer only as
// long as that has a control plane. One without finalizers is gone at once, without being seen in deletion.
func TestTheEndOfAControlPlaneWakesThoseThatWaitForIt(t *testing.T) {
	plane := &unstructured.Unstructured{}
	plane.SetAPIVersion("controlplane.example.com/v1")
	plane.SetKind("Plane")
	plane.SetNamespace("ns")
	plane.SetName("p")
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.example.com", Kind: "Plane", Name: "p"}
	machine := func(name string, deleted *metav1.Time) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, DeletionTimestamp: deleted, Finalizers: []string{clusterv1.MachineFinalizer},
		}}
		m.Spec.ClusterName = "c"
		return m
	}
	deleting := plane.DeepCopy()
	deleting.SetDeletionTimestamp(ptr.To(metav1.Now()))
	for name, test := range map[string]struct {
		last  *unstructured.Unstructured
		event func(context.Context, *Reconciler, workQueue, client.Object)
		want  int
	}{
		"gone, as it was when it began to go": {deleting, deleted, 1},
		"gone, not seen in deletion":          {plane, deleted, 1},
		"going":                               {deleting, updated, 1},
		"changed":                             {plane, updated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			reconciler := &Reconciler{Client: indexed(t, g, cluster, machine("going", ptr.To(metav1.Now())), machine("staying", nil))}
			test.event(t.Context(), reconciler, queue, test.last)
			g.Expect(queue.Len()).To(Equal(test.want))
			if test.want > 0 {
				request, _ := queue.Get()
				g.Expect(request.Name).To(Equal("going"))
			}
		})
	}
}

func deleted(ctx context.Context, r *Reconciler, queue workQueue, obj client.Object) {
	r.toDependents().Delete(ctx, event.DeleteEvent{Object: obj}, queue)
}

func updated(ctx context.Context, r *Reconciler, queue workQueue, obj client.Object) {
	r.toDependents().Update(ctx, event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}, queue)
}

// indexed is a cache with the indexes that Register adds.
func indexed(t *testing.T, g Gomega, objects ...client.Object) client.Client {
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	indexes := indexes{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)}
	g.Expect(index.Register(t.Context(), indexes)).To(Succeed())
	return indexes.Build()
}

type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(object, field, values)
	return nil
}
