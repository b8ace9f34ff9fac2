package interop

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
)

var (
	upstreamFlag = flag.Bool("upstream", false, "build upstream's providers and run the tests, as make interop does")
	logsFlag     = flag.String("logs", "", "a directory that keeps the logs")
)

const (
	// waitFor is how long a step may take; a rollout of the control plane replaces one Machine after the other.
	waitFor   = 4 * time.Minute
	lookEvery = 250 * time.Millisecond
	namespace = "interop"
	next      = "v1.34.1"
)

// The kinds of upstream's providers.
var (
	controlPlanes = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"}
	configs       = schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfig"}
	machines      = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DevMachine"}
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// world is a sandbox with upstream's providers.
type world struct {
	*WithT
	ctx     context.Context
	sandbox *sandbox.Sandbox
	client  sandbox.Client
}

func start(t *testing.T) *world {
	t.Helper()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	t.Cleanup(stop)
	w := &world{WithT: NewWithT(t), ctx: ctx}
	w.SetDefaultEventuallyTimeout(waitFor)
	w.SetDefaultEventuallyPollingInterval(lookEvery)
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	dir := *logsFlag
	if dir == "" {
		dir = t.TempDir()
	}
	l := &launcher{root: root, dir: dir, out: t.Output(), only: providers}
	paths, err := l.build(ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.sandbox, err = sandbox.Start(ctx, sandbox.Options{LogDir: dir})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(w.sandbox.Stop()).To(Succeed()) })
	w.client = w.sandbox.Control.Client
	w.Expect(l.install(ctx, w.client)).To(Succeed())
	w.Eventually(func() error { return established(ctx, w.client) }).Should(Succeed())
	kubeconfig := w.kubeconfig(t)
	for name, path := range paths {
		p, err := l.start(ctx, name, path, kubeconfig)
		w.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(p.Kill)
	}
	return w
}

// TestUpstreamProviders takes a Cluster of upstream's providers through its life with this core.
func TestUpstreamProviders(t *testing.T) {
	if !*upstreamFlag {
		t.Skip("takes minutes of building: make interop")
	}
	w := start(t)
	w.Expect(w.client.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	for _, step := range []struct {
		name string
		run  func()
	}{
		{"a control plane and workers run", func() {
			w.Expect(sandbox.CreateFrom(w.ctx, w.client, filepath.Join(root, "test/interop/testdata/cluster.yaml"),
				func(o *unstructured.Unstructured) { o.SetNamespace(namespace) })).To(Succeed())
			w.running(3, "v1.34.0")
		}},
		{"workers are rolled out and scaled", func() {
			w.patch(&clusterv1.MachineDeployment{ObjectMeta: w.named("workers")},
				`{"spec":{"replicas":4,"template":{"spec":{"version":"`+next+`"}}}}`)
			w.running(4, next)
		}},
		{"the control plane is rolled out", w.rollControlPlane},
		{"a worker is remediated", func() { w.replaced(w.condemn(false)); w.running(4, next) }},
		{"a Machine of the control plane is remediated by its provider", func() { w.replaced(w.condemn(true)); w.running(4, next) }},
		{"a Machine of the control plane is deleted manually", func() {
			m := w.any(true)
			w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())
			w.replaced(m)
			w.running(4, next)
		}},
		{"the core is killed and restarted", func() { w.sandbox.Core.Kill(); w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed()); w.running(4, next) }},
		{"the Cluster is deleted, and nothing is left", w.deleted},
	} {
		began := time.Now()
		ok := t.Run(step.name, func(t *testing.T) {
			outer := w.WithT
			defer func() { w.WithT = outer }()
			w.WithT = NewWithT(t)
			w.SetDefaultEventuallyTimeout(waitFor)
			w.SetDefaultEventuallyPollingInterval(lookEvery)
			step.run()
			t.Logf("%s", time.Since(began).Round(100*time.Millisecond))
		})
		if !ok {
			return
		}
	}
	refused, err := w.sandbox.Forbidden()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(refused).To(BeEmpty(), "the install manifest gives the core all rights that it needs in Cluster API's groups")
}

func (w *world) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	w.Expect(os.WriteFile(path, w.sandbox.Control.Kubeconfig(), 0o600)).To(Succeed())
	return path
}

func (w *world) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func (w *world) patch(obj client.Object, patch string) {
	w.Expect(w.client.Patch(w.ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// running waits until three Machines of the control plane and so many workers of that version are available, and the
// objects above them report that.
func (w *world) running(workers int, version string) {
	w.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "c"}, cluster)).To(Succeed())
		g.Expect(cluster.Status.Conditions).To(ContainElement(And(HaveField("Type", "Available"), HaveField("Status", metav1.ConditionTrue))))
		deployment := &clusterv1.MachineDeployment{}
		g.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "workers"}, deployment)).To(Succeed())
		g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(workers)))
		list := &clusterv1.MachineList{}
		g.Expect(w.client.List(w.ctx, list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(workers + 3))
		masters := 0
		for _, m := range list.Items {
			g.Expect(m.Status.Conditions).To(ContainElement(And(HaveField("Type", "Available"), HaveField("Status", metav1.ConditionTrue))), m.Name)
			if isMaster(&m) {
				masters++
				g.Expect(m.Status.CertificatesExpiryDate.IsZero()).To(BeFalse(), m.Name)
				continue
			}
			g.Expect(m.Spec.Version).To(Equal(version), m.Name)
		}
		g.Expect(masters).To(Equal(3))
	}).Should(Succeed())
}

func isMaster(m *clusterv1.Machine) bool {
	_, ok := m.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

func (w *world) rollControlPlane() {
	plane := &unstructured.Unstructured{}
	plane.SetGroupVersionKind(controlPlanes)
	plane.SetNamespace(namespace)
	plane.SetName("c")
	w.patch(plane, `{"spec":{"version":"`+next+`"}}`)
	w.Eventually(func(g Gomega) {
		list := &clusterv1.MachineList{}
		g.Expect(w.client.List(w.ctx, list, client.InNamespace(namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(3))
		for _, m := range list.Items {
			g.Expect(m.Spec.Version).To(Equal(next))
		}
	}).Should(Succeed())
	w.running(4, next)
}

// any returns a Machine of the control plane or a worker.
func (w *world) any(master bool) *clusterv1.Machine {
	list := &clusterv1.MachineList{}
	w.Expect(w.client.List(w.ctx, list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		if isMaster(&list.Items[i]) == master {
			return &list.Items[i]
		}
	}
	w.Expect(list.Items).To(BeNil(), "there should be one")
	return nil
}

// condemn sets the conditions that a health check sets on a Machine that its owner is to replace.
func (w *world) condemn(master bool) *clusterv1.Machine {
	m := w.any(master)
	before := m.DeepCopy()
	for kind, reason := range map[string]string{
		clusterv1.MachineHealthCheckSucceededCondition: clusterv1.MachineHealthCheckUnhealthyNodeReason,
		clusterv1.MachineOwnerRemediatedCondition:      clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
	} {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Now(),
		})
	}
	w.Expect(w.client.Status().Patch(w.ctx, m, client.MergeFrom(before))).To(Succeed())
	return m
}

// replaced waits until a Machine is gone.
func (w *world) replaced(m *clusterv1.Machine) {
	w.Eventually(func() error {
		return w.client.Get(w.ctx, client.ObjectKeyFromObject(m), &clusterv1.Machine{})
	}).Should(MatchError(ContainSubstring("not found")))
}

func (w *world) deleted() {
	w.Expect(w.client.Delete(w.ctx, &clusterv1.Cluster{ObjectMeta: w.named("c")})).To(Succeed())
	w.Eventually(func() error {
		return w.client.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: "c"}, &clusterv1.Cluster{})
	}).Should(MatchError(ContainSubstring("not found")))
	w.Eventually(func(g Gomega) {
		for _, gvk := range []schema.GroupVersionKind{
			controlPlanes, configs, machines, clusterv1.GroupVersion.WithKind("Machine"), corev1.SchemeGroupVersion.WithKind("Secret"),
		} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			g.Expect(w.client.List(w.ctx, list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty(), "no %s is left", gvk.Kind)
		}
	}).Should(Succeed())
}
