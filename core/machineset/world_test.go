package machineset

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
	"millwright.dev/core/trim"
	"millwright.dev/test/testenv"
)

// world is a namespace with a Cluster, templates and, if started, a manager of its own.
type world struct {
	g         *WithT
	ctx       context.Context
	namespace string
	// reconciler is that of the last start.
	reconciler *Reconciler
	// change may alter it before it is set up.
	change func(*Reconciler)
	stop   func()
}

// newWorld makes a namespace with a Cluster and both templates.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{g: NewWithT(t), ctx: t.Context(), namespace: fmt.Sprintf("ms-%d", namespaces.Add(1))}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: clusterName},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}},
	})
	w.create(w.template(infraGroup, "StandInMachineTemplate"))
	w.create(w.template(bootstrapGroup, "StandInConfigTemplate"))
	return w
}

func (w *world) create(object client.Object) {
	w.g.Expect(direct.Create(w.ctx, object)).To(Succeed())
}

func (w *world) template(group, kind string) *unstructured.Unstructured {
	template := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"size": "large"}}},
	}}
	template.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	template.SetNamespace(w.namespace)
	template.SetName("t")
	return template
}

// set is a MachineSet that fits the world; change may alter it before it is created.
func (w *world) set(replicas int32, change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	w.fill(set, replicas)
	for _, c := range change {
		c(set)
	}
	w.create(set)
	return set
}

func (w *world) fill(set *clusterv1.MachineSet, replicas int32) {
	set.Namespace = w.namespace
	set.Spec = clusterv1.MachineSetSpec{
		ClusterName: clusterName,
		Replicas:    &replicas,
		Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "a"}},
			Spec: clusterv1.MachineSpec{
				ClusterName:       clusterName,
				Version:           "v1.36.3",
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: "StandInMachineTemplate", Name: "t"},
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapGroup, Kind: "StandInConfigTemplate", Name: "t",
				}},
			},
		},
	}
}

// start runs a manager with a reconciler for this namespace alone; wrap may put something between it and the
// API server. It is stopped by w.stop, or at the end of the test.
func (w *world) start(t *testing.T, wrap ...func(client.WithWatch) client.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := ctrl.NewManager(rest.CopyConfig(env.Config), w.managerOptions(wrap...))
	w.g.Expect(err).NotTo(HaveOccurred())
	w.reconciler = &Reconciler{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Resolver:  &version.Resolver{Reader: mgr.GetCache()},
		Preflight: PreflightChecks()[:1],
	}
	if w.change != nil {
		w.change(w.reconciler)
	}
	w.g.Expect(index.Register(ctx, mgr.GetFieldIndexer())).To(Succeed())
	w.g.Expect(w.reconciler.SetupWithManager(mgr, controller.Options{
		MaxConcurrentReconciles: 2, SkipNameValidation: ptr.To(true),
	})).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	w.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			w.g.Expect(testenv.Ended(<-ended)).To(Succeed())
		}
	}
	t.Cleanup(w.stop)
}

func (w *world) managerOptions(wrap ...func(client.WithWatch) client.Client) ctrl.Options {
	options := ctrl.Options{
		Scheme:     scheme,
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},

		GracefulShutdownTimeout: ptr.To(testenv.ShutdownTimeout),
	}
	options.Cache.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	// As the core caches: what is trimmed must survive every write.
	options.Cache.DefaultTransform = trim.Transform(external.Trim)
	options.NewClient = func(c *rest.Config, o client.Options) (client.Client, error) {
		made, err := client.NewWithWatch(c, o)
		if err != nil || len(wrap) == 0 {
			return made, err
		}
		return wrap[0](made), nil
	}
	return options
}

// machines lists the Machines that exist.
func (w *world) machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	w.g.Expect(direct.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// children lists the names of what exists of a kind.
func (w *world) children(group, kind string) []string {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
	w.g.Expect(direct.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
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
		for _, machine := range w.machines() {
			g.Expect(machine.DeletionTimestamp).To(BeNil())
			names = append(names, machine.Name)
		}
		slices.Sort(names)
		g.Expect(names).To(HaveLen(n))
		g.Expect(w.children(infraGroup, "StandInMachine")).To(Equal(names))
		g.Expect(w.children(bootstrapGroup, "StandInConfig")).To(Equal(names))
	}
}

func (w *world) eventually(check func(Gomega)) {
	w.g.Eventually(check).WithTimeout(waiting).WithPolling(pollInterval).Should(Succeed())
}

// current reads the set.
func (w *world) current() *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{}
	w.g.Expect(direct.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "s"}, set)).To(Succeed())
	return set
}

// update changes the set, whatever others write meanwhile.
func (w *world) update(change func(*clusterv1.MachineSet)) {
	set := w.current()
	before := set.DeepCopy()
	change(set)
	w.g.Expect(direct.Patch(w.ctx, set, client.MergeFrom(before))).To(Succeed())
}

// endMachines lets Machines that are being deleted go, with their children, as the Machine controller does.
func (w *world) endMachines() {
	for _, machine := range w.machines() {
		if machine.DeletionTimestamp.IsZero() {
			continue
		}
		for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.InfrastructureRef, machine.Spec.Bootstrap.ConfigRef} {
			child := &unstructured.Unstructured{}
			child.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.APIGroup, Version: "v1", Kind: ref.Kind})
			child.SetNamespace(w.namespace)
			child.SetName(ref.Name)
			w.g.Expect(client.IgnoreNotFound(direct.Delete(w.ctx, child))).To(Succeed())
		}
		ended := machine.DeepCopy()
		ended.Finalizers = nil
		w.g.Expect(client.IgnoreNotFound(direct.Patch(w.ctx, ended, client.MergeFrom(&machine)))).To(Succeed())
	}
}

func requestFor(object client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}
