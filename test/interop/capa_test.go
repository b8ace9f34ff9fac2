package interop

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
	"millwright.dev/test/scale/clouds"
	"millwright.dev/test/scale/cores"
)

// capaCluster is the name of the Cluster, of its AWSCluster, and of their namespace: those that the benchmark's AWSCluster has.
const capaCluster = "clouds"

// capaWorld is a sandbox in which Cluster API's provider for AWS manages the machines.
type capaWorld struct {
	*world
	t        *testing.T
	provider clouds.Provider
	manager  *cores.Running
	dir      string
}

// TestCAPA takes Machines of Cluster API's provider for AWS, as released, through their life with this core: launch, a kill of the
// core in the middle, a change to Cluster API's core and back, and deletion, after which nothing is left.
func TestCAPA(t *testing.T) {
	if !*upstreamFlag {
		t.Skip("takes minutes of building: make interop")
	}
	w := startCAPA(t)
	step := func(name string, run func()) {
		began := time.Now()
		run()
		t.Logf("%s: %s", name, time.Since(began).Round(100*time.Millisecond))
	}
	step("two Machines run: provider ID, addresses, Node", func() {
		w.machine("first")
		w.machine("second")
		w.up("first", "second")
	})
	before := w.instances()
	w.Expect(before).To(HaveLen(2))
	step("the core is killed while a machine is launched, and restarted", func() {
		w.machine("third")
		w.Eventually(w.launches).Should(Equal(3))
		w.sandbox.Core.Kill()
		w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())
		w.up("first", "second", "third")
	})
	step("Cluster API's core replaces it, has a machine launched, and is replaced by it", w.swapped)
	w.Expect(w.launches()).To(Equal(5), "no instance was replaced, each Machine has one")
	w.Expect(w.instances()).To(ContainElements(before), "the earlier ones are still there")
	step("a Machine is deleted, and only its instance", func() {
		w.Expect(w.client.Delete(w.ctx, &clusterv1.Machine{ObjectMeta: w.at("first")})).To(Succeed())
		w.gone("first")
		w.Eventually(w.instances).Should(HaveLen(4))
		w.up("second", "third", "fourth", "fifth")
	})
	step("the Cluster is deleted, and nothing is left", w.nothingLeft)
	w.Expect(w.launches()).To(Equal(5))
	w.Expect(w.manager.Alive()).To(Succeed())
	refused, err := w.sandbox.Forbidden()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(refused).To(BeEmpty(), "the install manifest gives the core all rights that it needs for CAPA")
}

// startCAPA builds CAPA's manager and runs it on a sandbox, with a Cluster whose AWSCluster is externally managed.
func startCAPA(t *testing.T) *capaWorld {
	t.Helper()
	w := &capaWorld{world: &world{WithT: NewWithT(t), ctx: t.Context()}, t: t, dir: *logsFlag}
	w.SetDefaultEventuallyTimeout(waitFor)
	w.SetDefaultEventuallyPollingInterval(lookEvery)
	if w.dir == "" {
		w.dir = t.TempDir()
	}
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	path, version, err := cores.BuildTool(w.ctx, root, clouds.CAPATool, t.Output())
	w.Expect(err).NotTo(HaveOccurred(), "CAPA's manager cannot be built from its module, which %s pins", clouds.CAPATool.Directory)
	t.Logf("Cluster API Provider AWS %s", version)
	module, err := cores.ModuleDirectory(w.ctx, root, clouds.CAPATool)
	w.Expect(err).NotTo(HaveOccurred())
	w.provider = clouds.CAPA(cores.Core{Name: clouds.NameCAPA, Version: version, Path: path}, module)
	w.sandbox, err = sandbox.Start(w.ctx, sandbox.Options{
		LogDir: w.dir, Unbooted: true,
		WithoutWebhooks: true, // The test swaps the core, and upstream's does not serve them.
	})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(w.sandbox.Stop()).To(Succeed()) })
	w.client = w.sandbox.Control.Client
	w.crds(w.provider.CRDs[0], func(crd *unstructured.Unstructured) {
		crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2"}) // As its manifests do.
	})
	for _, name := range []string{w.provider.Namespace, capaCluster} {
		w.Expect(w.client.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	env, args := w.provider.Endpoint(w.sandbox.Cloud("aws").URL())
	w.manager, err = cores.Start(w.ctx, w.provider.Core, cores.Options{
		Kubeconfig: w.kubeconfig(t), Dir: filepath.Join(w.dir, "capa"), Args: args, OwnLimits: true,
		Env: append(env, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIASANDBOX000000000", "AWS_SECRET_ACCESS_KEY=sandbox",
			"AWS_EC2_METADATA_DISABLED=true", "POD_NAMESPACE="+w.provider.Namespace, "POD_NAME=capa", "POD_UID=capa"),
	})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.manager.Kill)
	w.Expect(w.provider.Prepare(w.ctx, w.client)).To(Succeed())
	w.Expect(w.sandbox.CreateKubeconfigSecret(w.ctx, capaCluster, capaCluster)).To(Succeed())
	w.Expect(w.client.Create(w.ctx, &clusterv1.Cluster{ObjectMeta: w.at(capaCluster), Spec: clusterv1.ClusterSpec{
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443},
		InfrastructureRef:    w.reference(w.provider.Infrastructure.Kind, capaCluster),
	}})).To(Succeed())
	return w
}

// crds creates those of a directory that are not there, and waits until they are served.
func (w *capaWorld) crds(dir string, edits ...func(*unstructured.Unstructured)) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(files).NotTo(BeEmpty(), dir)
	for _, file := range files {
		if err := sandbox.CreateFrom(w.ctx, w.client, file, edits...); !apierrors.IsAlreadyExists(err) {
			w.Expect(err).NotTo(HaveOccurred())
		}
	}
	w.Eventually(func() error { return established(w.ctx, w.client) }).Should(Succeed())
}

func (w *capaWorld) at(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: capaCluster, Name: name}
}

func (w *capaWorld) reference(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: w.provider.Machine.Group, Kind: kind, Name: name}
}

// machine creates a Machine with an AWSMachine and a bootstrap Secret of the same name.
func (w *capaWorld) machine(name string) {
	secret := &corev1.Secret{ObjectMeta: w.at(name), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{
		"value": []byte("#cloud-config\n"), "format": []byte("cloud-config"),
	}}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: capaCluster}
	infra := &unstructured.Unstructured{Object: map[string]any{"spec": w.provider.Spec()}}
	infra.SetGroupVersionKind(w.provider.Machine)
	infra.SetNamespace(capaCluster)
	infra.SetName(name)
	machine := &clusterv1.Machine{ObjectMeta: w.at(name), Spec: clusterv1.MachineSpec{
		ClusterName: capaCluster, Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(name)},
		InfrastructureRef: w.reference(w.provider.Machine.Kind, name),
	}}
	for _, object := range []client.Object{secret, infra, machine} {
		w.Expect(w.client.Create(w.ctx, object)).To(Succeed())
	}
}

// up waits until Machines run, each with an instance and a Node of its own.
func (w *capaWorld) up(names ...string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		ids := map[string]bool{}
		for _, name := range names {
			m, node := &clusterv1.Machine{}, &corev1.Node{}
			g.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: capaCluster, Name: name}, m)).To(Succeed())
			g.Expect(m.Status.Phase).To(Equal(string(clusterv1.MachinePhaseRunning)), "%s: %v", name, m.Status.Conditions)
			g.Expect(m.Spec.ProviderID).To(HavePrefix("aws:///us-east-1a/i-"), name)
			g.Expect(m.Status.Addresses).To(ContainElement(HaveField("Type", clusterv1.MachineInternalIP)), name)
			g.Expect(w.sandbox.Target.Client.Get(w.ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node)).To(Succeed())
			g.Expect(node.Spec.ProviderID).To(Equal(m.Spec.ProviderID))
			ids[m.Spec.ProviderID] = true
		}
		g.Expect(ids).To(HaveLen(len(names)))
	}).Should(Succeed())
}

// swapped replaces this core by Cluster API's, and then that by this one.
func (w *capaWorld) swapped() {
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	upstream, err := cores.BuildUpstream(w.ctx, root, w.t.Output())
	w.Expect(err).NotTo(HaveOccurred())
	w.crds(filepath.Join(w.upstreamModule(root), "core/config/crd/bases"))
	// It does more in the target cluster than this core's identity may.
	w.Expect(w.client.Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "upstream-core"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: "millwright-target"}},
	})).To(Succeed())
	w.sandbox.Core.Stop()
	dir := filepath.Join(w.dir, "upstream-core")
	w.Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
	running, err := cores.Start(w.ctx, upstream, cores.Options{
		Kubeconfig: w.kubeconfig(w.t), Dir: dir, Env: []string{"POD_NAMESPACE=default", "POD_NAME=core", "POD_UID=core"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(running.Kill)
	w.machine("fourth")
	w.up("first", "second", "third", "fourth")
	uninitialized := w.kubeconfigAlone("late")
	running.Stop()
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())
	w.Eventually(func(g Gomega) {
		g.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(uninitialized), uninitialized)).To(Succeed())
		g.Expect(uninitialized.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
	}).Should(Succeed(), "this core sends requests to the API server")
	w.machine("fifth")
	w.up("first", "second", "third", "fourth", "fifth")
}

// kubeconfigAlone creates a Cluster that has only a kubeconfig, which Cluster API's core does not count as initialized: no
// control plane object says so, and no Machine of a control plane has a Node.
func (w *capaWorld) kubeconfigAlone(name string) *clusterv1.Cluster {
	w.Expect(w.sandbox.CreateKubeconfigSecret(w.ctx, capaCluster, name)).To(Succeed())
	cluster := &clusterv1.Cluster{ObjectMeta: w.at(name)}
	cluster.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
	w.Expect(w.client.Create(w.ctx, cluster)).To(Succeed())
	w.Eventually(func(g Gomega) {
		g.Expect(w.client.Get(w.ctx, client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		g.Expect(cluster.Status.Conditions).To(ContainElement(And(HaveField("Type", clusterv1.ClusterRemoteConnectionProbeCondition),
			HaveField("Status", metav1.ConditionTrue))), "the API server answers")
		g.Expect(cluster.Status.Conditions).To(ContainElement(And(HaveField("Type", clusterv1.ClusterControlPlaneInitializedCondition),
			HaveField("Status", Not(Equal(metav1.ConditionTrue))))))
	}).Should(Succeed())
	w.Expect(cluster.Status.Initialization.ControlPlaneInitialized).To(BeNil())
	return cluster
}

func (w *capaWorld) upstreamModule(root string) string {
	module, err := cores.ModuleDirectory(w.ctx, root, cores.Tool{Directory: nestedModule, Module: mainModule})
	w.Expect(err).NotTo(HaveOccurred())
	return module
}

// launches is how many instances were requested.
func (w *capaWorld) launches() int {
	calls, err := w.sandbox.EC2.Calls(w.ctx, "RunInstances")
	w.Expect(err).NotTo(HaveOccurred())
	return len(calls)
}

// instances are the IDs of those that cost money.
func (w *capaWorld) instances() []string {
	live, err := w.sandbox.EC2.LiveInstances(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	var ids []string
	for _, instance := range live {
		ids = append(ids, instance.ID)
	}
	return ids
}

// gone waits until a Machine and its AWSMachine are gone.
func (w *capaWorld) gone(name string) {
	w.Eventually(func(g Gomega) {
		for _, gvk := range []schema.GroupVersionKind{clusterv1.GroupVersion.WithKind("Machine"), w.provider.Machine} {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(gvk)
			err := w.client.Get(w.ctx, client.ObjectKey{Namespace: capaCluster, Name: name}, object)
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%s %s: %v, finalizers %v", gvk.Kind, name, err, object.GetFinalizers())
		}
	}).Should(Succeed())
}

// nothingLeft deletes the Cluster, and expects neither an object of it nor anything in the account.
func (w *capaWorld) nothingLeft() {
	for _, name := range []string{capaCluster, "late"} {
		w.Expect(w.client.Delete(w.ctx, &clusterv1.Cluster{ObjectMeta: w.at(name)})).To(Succeed())
	}
	w.Eventually(func(g Gomega) {
		for _, gvk := range []schema.GroupVersionKind{
			clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("Machine"), w.provider.Machine, *w.provider.Infrastructure,
		} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			g.Expect(w.client.List(w.ctx, list)).To(Succeed())
			g.Expect(list.Items).To(BeEmpty(), "no %s is left", gvk.Kind)
		}
		left, err := w.sandbox.Cloud("aws").Left(w.ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(BeEmpty(), "the account is empty")
		nodes := &corev1.NodeList{}
		g.Expect(w.sandbox.Target.Client.List(w.ctx, nodes)).To(Succeed())
		g.Expect(nodes.Items).To(BeEmpty())
	}).Should(Succeed())
}
