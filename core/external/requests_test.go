package external_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/core/external"
	"millwright.dev/core/index"
)

// indexes adds indexes to a client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(obj, field, values)
	return nil
}

// enqueues is what a handler adds to a queue when an object is created.
func enqueues(ctx context.Context, h handler.EventHandler, obj client.Object) []string {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	h.Create(ctx, event.CreateEvent{Object: obj}, queue)
	var names []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		names = append(names, request.String())
	}
	return names
}

// TestReferrers are found by an index, and where they have the name of what they refer to, by that.
func TestReferrers(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	ref := func(name string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "Thing", Name: name}
	}
	machine := func(name, refers string) *clusterv1.Machine {
		return &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec:       clusterv1.MachineSpec{ClusterName: "c", InfrastructureRef: ref(refers)},
		}
	}
	cluster := func(name, refers string) *clusterv1.Cluster {
		return &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: clusterv1.ClusterSpec{InfrastructureRef: ref(refers)},
		}
	}
	elsewhere := machine("t", "t")
	elsewhere.Namespace = "elsewhere"
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		machine("t", "t"), machine("other", "t"), machine("u", "v"), elsewhere, cluster("t", "t"), cluster("u", "v"),
	)
	g.Expect(index.Register(t.Context(), indexes{builder})).To(Succeed())
	server := builder.Build()
	names := func(reader client.Reader, list client.ObjectList, name string) []string {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(object(nil).GroupVersionKind())
		obj.SetNamespace("ns")
		obj.SetName(name)
		var names []string
		newList := func() client.ObjectList { return list.DeepCopyObject().(client.ObjectList) }
		for _, request := range external.Referrers(t.Context(), reader, newList, obj) {
			names = append(names, request.String())
		}
		return names
	}
	machines, clusters := &clusterv1.MachineList{}, &clusterv1.ClusterList{}
	g.Expect(names(server, machines, "t")).To(ConsistOf("ns/t", "ns/other"))
	g.Expect(names(server, clusters, "t")).To(ConsistOf("ns/t"))
	g.Expect(names(server, machines, "v")).To(ConsistOf("ns/u"))
	g.Expect(names(server, machines, "u")).To(BeEmpty(), "its namesake refers to another object")
	g.Expect(names(server, clusters, "u")).To(BeEmpty())
	g.Expect(names(server, machines, "none")).To(BeEmpty())

	found := external.ToReferrersOfCRD(server, func() client.ObjectList { return &clusterv1.MachineList{} })
	g.Expect(enqueues(t.Context(), found, definition("Thing", things, 1, "v1"))).To(ConsistOf("ns/t", "ns/other", "ns/u", "elsewhere/t"))
	g.Expect(enqueues(t.Context(), found, definition("Other", others, 1, "v1"))).To(BeEmpty())

	fails := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("stopped")
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("stopped")
		},
	})
	g.Expect(names(fails, machines, "t")).To(BeEmpty())
	g.Expect(external.Requests(&clusterv1.MachineSetList{})).To(BeEmpty())
}
