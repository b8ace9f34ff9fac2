package machineset

import (
	"context"
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// world is a namespace with a Cluster, templates and, if started, a manager of its own.
type world struct {
	*workers.Fixture
	// reconciler is that of the last start.
	reconciler *Reconciler
	// change may alter it before it is set up.
	change func(*Reconciler)
	// wire may put something between the manager and the network.
	wire func(http.RoundTripper) http.RoundTripper
}

// newWorld makes a namespace with a Cluster and both templates.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Fixture: suite.New(t)}
	w.Create(w.Template(workers.InfraTemplateKind, "t"))
	w.Create(w.Template(workers.ConfigTemplateKind, "t"))
	return w
}

// set is a MachineSet that fits the world; change may alter it before it is created.
func (w *world) set(replicas int32, change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	w.fill(set, replicas)
	for _, c := range change {
		c(set)
	}
	w.Create(set)
	return set
}

func (w *world) fill(set *clusterv1.MachineSet, replicas int32) {
	set.Namespace = w.Namespace
	set.Spec = clusterv1.MachineSetSpec{
		ClusterName: workers.ClusterName,
		Replicas:    &replicas,
		Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
		Template:    workers.MachineTemplate("t"),
	}
}

// start runs a manager with a reconciler for this namespace alone; wrap may put something between it and the
// API server. It is stopped by w.Stop, or at the end of the test.
func (w *world) start(t *testing.T, wrap ...func(client.WithWatch) client.Client) {
	t.Helper()
	m := workers.Manager{Transport: w.wire, SetUp: func(_ context.Context, mgr ctrl.Manager) error {
		w.reconciler = &Reconciler{
			Client:    mgr.GetClient(),
			APIReader: mgr.GetAPIReader(),
			Informers: external.NewInformers(&version.Resolver{Reader: mgr.GetCache()}, mgr.GetCache(), mgr.GetAPIReader(), mgr.GetRESTMapper()),
			Preflight: PreflightChecks()[:1],
		}
		if w.change != nil {
			w.change(w.reconciler)
		}
		return w.reconciler.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 2})
	}}
	if len(wrap) > 0 {
		m.Wrap = wrap[0]
	}
	w.Start(t, m)
}

// children lists the names of what exists of a kind.
func (w *world) children(kind string) []string {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: coretest.Group, Version: "v1", Kind: kind + "List"})
	w.G.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	slices.Sort(names)
	return names
}

// complete is satisfied when there are n Machines, none deleting, each with both children and no others.
func (w *world) complete(n int) func(Gomega) {
	return func(g Gomega) {
		var names []string
		for _, machine := range w.Machines() {
			g.Expect(machine.DeletionTimestamp).To(BeNil())
			names = append(names, machine.Name)
		}
		slices.Sort(names)
		g.Expect(names).To(HaveLen(n))
		g.Expect(w.children(workers.InfraKind)).To(Equal(names))
		g.Expect(w.children(workers.ConfigKind)).To(Equal(names))
	}
}

// current reads the set.
func (w *world) current() *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: "s"}, set)).To(Succeed())
	return set
}

// update changes the set, whatever others write meanwhile.
func (w *world) update(change func(*clusterv1.MachineSet)) {
	set := w.current()
	before := set.DeepCopy()
	change(set)
	w.G.Expect(direct.Patch(w.Ctx, set, client.MergeFrom(before))).To(Succeed())
}

// endMachines lets Machines that are being deleted go, with their children, as the Machine controller does.
func (w *world) endMachines() {
	for _, machine := range w.Machines() {
		if !machine.DeletionTimestamp.IsZero() {
			w.G.Expect(workers.Release(w.Ctx, direct, &machine)).To(Succeed())
		}
	}
}

func requestFor(object client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}
