package cluster_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

func TestClusterThatIsOnlyAKubeconfig(t *testing.T) {
	g := NewWithT(t)
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: core.Namespace(t), Name: "c"},
		Spec:       clusterv1.ClusterSpec{Paused: ptr.To(false)},
	}
	core.Create(t, cluster)
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(c.Finalizers).To(ConsistOf(clusterv1.ClusterFinalizer))
		g.Expect(c.Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()))
		g.Expect(c.Status.Initialization.ControlPlaneInitialized).To(BeNil())
		g.Expect(c.Status.Phase).To(Equal("Pending"))
		g.Expect(condition(c, "InfrastructureReady")).To(Equal("True/NotNeeded"))
		g.Expect(condition(c, "ControlPlaneInitialized")).To(Equal("False/NotInitialized"))
		g.Expect(message(c, "ControlPlaneInitialized")).To(ContainSubstring("Secret c-kubeconfig does not exist"))
		g.Expect(condition(c, "RemoteConnectionProbe")).To(Equal("False/ProbeFailed"))
	})

	core.Kubeconfig(t, cluster.Namespace, "c", core.Env.Kubeconfig)
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(c.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
		g.Expect(c.Status.Phase).To(Equal("Provisioned"))
		for _, good := range []string{"ControlPlaneInitialized", "RemoteConnectionProbe", "Available"} {
			g.Expect(condition(c, good)).To(HavePrefix("True/"), good)
		}
		g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
	})

	// The write that was awaited, and Clusters of earlier tests that go, may have one reconciled once more.
	g.Eventually(func(g Gomega) {
		before := coretest.Reconciles("cluster")
		g.Consistently(func() int { return coretest.Reconciles("cluster") - before }).WithTimeout(2 * time.Second).Should(BeZero())
	}).WithTimeout(timeout).Should(Succeed())
}

// TestARotationToARefusedKubeconfigIsReported: the old connection stays in use, and nothing would show it until the core restarts.
func TestARotationToARefusedKubeconfigIsReported(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	cluster := core.Cluster(t, namespace, "c")
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "RemoteConnectionProbe")).To(HavePrefix("True/"))
	})
	rotate(t, namespace, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"https://127.0.0.1:1"}}],
		"users":[{"name":"x","user":{"exec":{
			"apiVersion":"client.authentication.k8s.io/v1","command":"touch","interactiveMode":"Never"}}}]}`))
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "RemoteConnectionProbe")).To(HavePrefix("True/"), "it works still")
		g.Expect(message(c, "RemoteConnectionProbe")).To(And(ContainSubstring("is kept"), ContainSubstring("an exec plugin, which is refused")))
	})
	g.Eventually(func(g Gomega) []eventsv1.Event {
		list := &eventsv1.EventList{}
		g.Expect(core.Client.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
		return list.Items
	}).WithTimeout(timeout).Should(ContainElement(And(HaveField("Reason", "KubeconfigNotUsed"), HaveField("Type", corev1.EventTypeWarning))))
	rotate(t, namespace, core.Env.Kubeconfig)
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "RemoteConnectionProbe")).To(HavePrefix("True/"))
		g.Expect(message(c, "RemoteConnectionProbe")).To(BeEmpty())
	})
}

func TestRefusedKubeconfig(t *testing.T) {
	namespace := core.Namespace(t)
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)},
	}
	core.Create(t, cluster)
	core.Kubeconfig(t, namespace, "c", []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"https://127.0.0.1:1"}}],
		"users":[{"name":"x","user":{"exec":{
			"apiVersion":"client.authentication.k8s.io/v1","command":"touch","args":["/tmp/owned"],"interactiveMode":"Never"}}}]}`))
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(message(c, "RemoteConnectionProbe")).To(ContainSubstring("uses an exec plugin, which is refused"))
	})
}

func TestClusterWithReferences(t *testing.T) {
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		t.Run(string(contract), func(t *testing.T) {
			g := NewWithT(t)
			namespace := core.Namespace(t)
			cluster := &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
				Spec: clusterv1.ClusterSpec{
					InfrastructureRef: coretest.Ref(coretest.Kind(coretest.InfraCluster, contract), "i"),
					ControlPlaneRef:   coretest.Ref(coretest.Kind(coretest.ControlPlane, contract), "p"),
				},
			}
			core.Create(t, cluster)
			eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
				g.Expect(condition(c, "InfrastructureReady")).To(Equal("False/ObjectDoesNotExist"))
				g.Expect(condition(c, "ControlPlaneAvailable")).To(Equal("False/ObjectDoesNotExist"))
				g.Expect(c.Status.Phase).To(Equal("Provisioning"))
			})

			infra := coretest.Object(coretest.Kind(coretest.InfraCluster, contract), namespace, "i")
			plane := coretest.Object(coretest.Kind(coretest.ControlPlane, contract), namespace, "p")
			core.Create(t, infra)
			core.Create(t, plane)
			eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
				g.Expect(condition(c, "InfrastructureReady")).To(Equal("False/NotReady"))
				g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(infra), infra)).To(Succeed())
				g.Expect(infra.GetOwnerReferences()).To(ConsistOf(HaveField("UID", c.UID)))
				g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(plane), plane)).To(Succeed())
				g.Expect(plane.GetOwnerReferences()).To(ConsistOf(HaveField("UID", c.UID)))
			})

			core.SetSpec(t, infra, map[string]any{"controlPlaneEndpoint": map[string]any{"host": "api.example.com", "port": int64(6443)}})
			core.SetStatus(t, infra, coretest.Provisioned(contract))
			initialized := map[string]any{"initialized": true}
			if contract == version.V1Beta2 {
				initialized = map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}}
			}
			core.SetStatus(t, plane, initialized)
			eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
				g.Expect(c.Spec.ControlPlaneEndpoint.String()).To(Equal("api.example.com:6443"))
				g.Expect(c.Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()))
				g.Expect(condition(c, "ControlPlaneInitialized")).To(Equal("True/Initialized"))
				g.Expect(c.Status.Phase).To(Equal("Provisioned"))
				g.Expect(condition(c, "Available")).To(Equal("False/NotAvailable"), "no kubeconfig yet")
				g.Expect(c.Status.ControlPlane).To(BeNil(), "the control plane does not count")
			})

			core.SetSpec(t, plane, map[string]any{"replicas": int64(3)})
			counts := map[string]any{"replicas": int64(3), "readyReplicas": int64(2), "availableReplicas": int64(2), "upToDateReplicas": int64(3)}
			if contract == version.V1Beta1 {
				counts = map[string]any{"replicas": int64(3), "readyReplicas": int64(2), "unavailableReplicas": int64(1), "updatedReplicas": int64(3)}
			}
			core.SetStatus(t, plane, counts)
			eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
				g.Expect(c.Status.ControlPlane).To(Equal(&clusterv1.ClusterControlPlaneStatus{
					DesiredReplicas: ptr.To[int32](3), Replicas: ptr.To[int32](3), ReadyReplicas: ptr.To[int32](2),
					AvailableReplicas: ptr.To[int32](2), UpToDateReplicas: ptr.To[int32](3),
				}))
			})

			g.Expect(core.Client.Delete(t.Context(), cluster)).To(Succeed())
			eventuallyGone(t, cluster)
			eventuallyGone(t, infra)
			eventuallyGone(t, plane)
		})
	}
}

func TestPaused(t *testing.T) {
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: core.Namespace(t), Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)},
	}
	core.Create(t, cluster)
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "Paused")).To(Equal("True/Paused"))
		g.Expect(c.Finalizers).To(BeEmpty())
	})
}

// TestDeletionGoesInOrder holds each kind by a finalizer and sees that the next is not touched before.
func TestDeletionGoesInOrder(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	cluster := core.Cluster(t, namespace, "c")
	held := []string{"standin.example.com/held"}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: held}
	}
	template := clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"x": "y"}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")}, InfrastructureRef: coretest.Ref("Nowhere", "n"),
		},
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}
	steps := []client.Object{
		&clusterv1.MachineDeployment{
			ObjectMeta: meta("d"),
			Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "c", Selector: selector, Template: template},
		},
		&clusterv1.MachineSet{ObjectMeta: meta("s"), Spec: clusterv1.MachineSetSpec{ClusterName: "c", Selector: selector, Template: template}},
		&clusterv1.Machine{ObjectMeta: meta("m"), Spec: template.Spec},
	}
	for _, obj := range steps {
		core.Create(t, obj)
	}
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "ControlPlaneInitialized")).To(HavePrefix("True/"))
	})
	g.Expect(core.Client.Delete(t.Context(), cluster)).To(Succeed())
	// A Cluster is often deleted together with its kubeconfig; the connection must outlive it.
	g.Expect(core.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c-kubeconfig"}})).
		To(Succeed())

	for i, obj := range steps {
		eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
			g.Expect(condition(c, "Deleting")).To(Equal("True/WaitingForWorkersDeletion"))
			g.Expect(message(c, "Deleting")).To(HaveSuffix(" " + obj.GetName()))
			g.Expect(c.Status.Phase).To(Equal("Deleting"))
		})
		for j, other := range steps[i:] {
			g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other)).To(Succeed())
			g.Expect(other.GetDeletionTimestamp() != nil).To(Equal(j == 0), "only %T is being deleted, not %T", obj, other)
		}
		_, err := core.Connections.Get(client.ObjectKeyFromObject(cluster))
		g.Expect(err).NotTo(HaveOccurred(), "the target cluster stays connected")
		// The kind's own controller removes its finalizer at the same time.
		g.Eventually(func() error {
			if err := core.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
			controllerutil.RemoveFinalizer(obj, held[0])
			return core.Client.Update(t.Context(), obj)
		}).Should(Succeed())
		eventuallyGone(t, obj)
	}
	eventuallyGone(t, cluster)
}
