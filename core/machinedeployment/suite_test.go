package machinedeployment

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
	"millwright.dev/core/machineset"
	"millwright.dev/core/trim"
	"millwright.dev/test/testenv"
)

const (
	infraGroup     = "infrastructure.example.com"
	bootstrapGroup = "bootstrap.example.com"
	clusterName    = "c"
	waiting        = 60 * time.Second
	pollInterval   = 50 * time.Millisecond
)

var (
	env    *testenv.Env
	scheme = runtime.NewScheme()
	// direct reads and writes without a cache.
	direct client.Client
	// namespaces counts those handed out.
	namespaces atomic.Int32
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("MILLWRIGHT_PURE_TESTS") != "" {
		// Those of pure functions alone, see test/mutate.
		return m.Run()
	}
	log.SetLogger(klog.Background())
	must(testenv.RunSideBySide(), clientgoscheme.AddToScheme(scheme), clusterv1.AddToScheme(scheme))
	var err error
	env, err = testenv.Start(testenv.Options{
		CRDs: []testenv.CRDs{testenv.CoreCRDs, testenv.AWSCRDs, testenv.CloudConfigCRDs},
		Objects: []*apiextensionsv1.CustomResourceDefinition{
			standIn(infraGroup, "StandInMachine"), standIn(infraGroup, "StandInMachineTemplate"),
			standIn(bootstrapGroup, "StandInConfig"), standIn(bootstrapGroup, "StandInConfigTemplate"),
		},
	})
	must(err)
	defer func() { must(env.Stop()) }()
	direct, err = client.New(env.Config, client.Options{Scheme: scheme})
	must(err)
	return m.Run()
}

func must(errs ...error) {
	for _, err := range errs {
		if err != nil {
			panic(err)
		}
	}
}

// standIn is a kind that keeps the contract and takes any field.
func standIn(group, kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Labels: map[string]string{version.Label(version.V1Beta2): "v1"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &open},
			}},
		},
	}
}

// world is a namespace with a Cluster and templates a and b, and a manager with both controllers and one that
// plays the Machine controller.
type world struct {
	g         *WithT
	ctx       context.Context
	namespace string
	machines  *machinePlayer
	// clock is that of the deployment controller; nil for the real one.
	clock clock.PassiveClock
	// change may alter the deployment controller before it starts.
	change func(*Reconciler)
	// wire may put something between the manager and the network.
	wire func(http.RoundTripper) http.RoundTripper
	stop func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{g: NewWithT(t), ctx: t.Context(), namespace: fmt.Sprintf("md-%d", namespaces.Add(1))}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: clusterName},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}},
	})
	for _, name := range []string{"a", "b"} {
		w.create(w.template(infraGroup, "StandInMachineTemplate", name))
	}
	w.create(w.template(bootstrapGroup, "StandInConfigTemplate", "a"))
	return w
}

func (w *world) create(object client.Object) {
	w.g.Expect(direct.Create(w.ctx, object)).To(Succeed())
}

func (w *world) template(group, kind, name string) *unstructured.Unstructured {
	template := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"size": "large"}}},
	}}
	template.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	template.SetNamespace(w.namespace)
	template.SetName(name)
	return template
}

// deployment makes a MachineDeployment that fits the world; change may alter it before it is created.
func (w *world) deployment(replicas int32, change ...func(*clusterv1.MachineDeployment)) {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "d"},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: clusterName,
			Replicas:    &replicas,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "a"}},
				Spec: clusterv1.MachineSpec{
					ClusterName:       clusterName,
					Version:           "v1.36.3",
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: "StandInMachineTemplate", Name: "a"},
					Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
						APIGroup: bootstrapGroup, Kind: "StandInConfigTemplate", Name: "a",
					}},
				},
			},
		},
	}
	for _, c := range change {
		c(deployment)
	}
	w.create(deployment)
}

// start runs a manager for this namespace alone; wrap may put something between it and the API server.
func (w *world) start(t *testing.T, wrap ...func(client.WithWatch) client.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	options := ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, GracefulShutdownTimeout: ptr.To(testenv.ShutdownTimeout)}
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
	config := rest.CopyConfig(env.Config)
	if w.wire != nil {
		config.Wrap(w.wire)
	}
	mgr, err := ctrl.NewManager(config, options)
	w.g.Expect(err).NotTo(HaveOccurred())
	anyName := controller.Options{MaxConcurrentReconciles: 2, SkipNameValidation: ptr.To(true)}
	sets := &machineset.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Resolver: &version.Resolver{Reader: mgr.GetCache()}}
	w.g.Expect(index.Register(ctx, mgr.GetFieldIndexer())).To(Succeed())
	w.g.Expect(sets.SetupWithManager(mgr, anyName)).To(Succeed())
	deployments := &Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: w.clock}
	if w.change != nil {
		w.change(deployments)
	}
	w.g.Expect(deployments.SetupWithManager(mgr, anyName)).To(Succeed())
	if w.machines == nil {
		w.machines = &machinePlayer{}
	}
	w.g.Expect(ctrl.NewControllerManagedBy(mgr).Named("machine-player").For(&clusterv1.Machine{}).WithOptions(anyName).
		Complete(w.machines)).To(Succeed())
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

func (w *world) eventually(check func(Gomega)) {
	w.g.Eventually(check).WithTimeout(waiting).WithPolling(pollInterval).Should(Succeed())
}

func (w *world) current() *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{}
	w.g.Expect(direct.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "d"}, deployment)).To(Succeed())
	return deployment
}

// scaleBy patches the scale subresource, as autoscalers do.
func (w *world) scaleBy(delta int32) {
	scale := &autoscalingv1.Scale{}
	deployment := w.current()
	w.g.Expect(direct.SubResource("scale").Get(w.ctx, deployment, scale)).To(Succeed())
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, scale.Spec.Replicas+delta)
	w.g.Expect(direct.SubResource("scale").Patch(w.ctx, deployment, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

func (w *world) update(change func(*clusterv1.MachineDeployment)) {
	deployment := w.current()
	before := deployment.DeepCopy()
	change(deployment)
	w.g.Expect(direct.Patch(w.ctx, deployment, client.MergeFrom(before))).To(Succeed())
}

// allSets are the sets of the deployment, those that are kept as history included.
func (w *world) allSets() []clusterv1.MachineSet {
	list := &clusterv1.MachineSetList{}
	w.g.Expect(direct.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// listSets are the sets that are to have Machines.
func (w *world) listSets() []clusterv1.MachineSet {
	return slices.DeleteFunc(w.allSets(), func(set clusterv1.MachineSet) bool { return ptr.Deref(set.Spec.Replicas, 0) == 0 })
}

func (w *world) listMachines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	w.g.Expect(direct.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	return list.Items
}

// running is satisfied when the deployment has n Machines, all available and up to date, of one set.
func (w *world) running(n int32) func(Gomega) {
	return func(g Gomega) {
		deployment := w.current()
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Status.Replicas).To(HaveValue(Equal(n)))
		g.Expect(deployment.Status.AvailableReplicas).To(HaveValue(Equal(n)))
		g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(Equal(n)))
		g.Expect(deployment.Status.Phase).To(Equal("Running"))
		g.Expect(w.listSets()).To(HaveLen(1))
	}
}
