package machine_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

func TestLifeOfAMachineMadeByHand(t *testing.T) {
	t.Parallel()
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		t.Run(string(contract), func(t *testing.T) {
			f := newFixture(t, contract)
			f.machine.Labels = map[string]string{"node-role.kubernetes.io/worker": "", "example.com/other": "stays"}
			f.createMachine()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(m.Finalizers).To(ConsistOf(clusterv1.MachineFinalizer))
				g.Expect(m.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
				g.Expect(m.OwnerReferences).To(ConsistOf(HaveField("Kind", "Cluster")))
				g.Expect(m.Status.Phase).To(Equal("Pending"))
				g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("False/ObjectDoesNotExist"))
			})

			f.createObjects()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				f.refresh(f.infra)
				g.Expect(f.infra.GetOwnerReferences()).To(ConsistOf(And(HaveField("Kind", "Machine"), HaveField("UID", m.UID))))
				g.Expect(f.infra.GetLabels()).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
				g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("False/NotReady"))
			})

			f.refresh(f.config)
			core.SetStatus(t, f.config, coretest.BootstrapReady(contract, "data"))
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(m.Spec.Bootstrap.DataSecretName).To(HaveValue(Equal("data")))
				g.Expect(m.Status.Phase).To(Equal("Provisioning"))
				g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("True/Ready"))
			})

			f.provision()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(m.Status.Phase).To(Equal("Provisioned"))
				g.Expect(m.Spec.ProviderID).To(Equal(f.providerID()))
				g.Expect(m.Status.Addresses).To(ConsistOf(clusterv1.MachineAddress{Type: "InternalIP", Address: "10.0.0.1"}))
				g.Expect(m.Status.FailureDomain).To(Equal("zone-a"))
				g.Expect(condition(m, "NodeHealthy")).To(Equal("Unknown/InspectionFailed"))
				g.Expect(message(m, "NodeHealthy")).To(ContainSubstring("Waiting for a Node with the provider ID"))
			})

			node := core.Node(t, f.machine.Name, f.providerID(), true)
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(m.Status.Phase).To(Equal("Running"))
				g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name))
				g.Expect(m.Status.NodeInfo.KubeletVersion).To(Equal("v1.36.3"))
				for _, good := range []string{"NodeReady", "NodeHealthy", "Ready", "Available"} {
					g.Expect(condition(m, good)).To(HavePrefix("True/"), good)
				}
			})
			f.refresh(node)
			f.Expect(node.Labels).To(HaveKey("node-role.kubernetes.io/worker"))
			f.Expect(node.Labels).NotTo(HaveKey("example.com/other"))
			f.Expect(node.Annotations).To(HaveKeyWithValue(clusterv1.MachineAnnotation, f.machine.Name))
			f.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", clusterv1.NodeUninitializedTaint.Key)))
		})
	}
}

// provision has the stand-in infrastructure provisioned.
func (f *fixture) provision() {
	f.t.Helper()
	f.refresh(f.infra)
	core.SetSpec(f.t, f.infra, map[string]any{"providerID": f.providerID()})
	status := coretest.Provisioned(f.contract)
	status["addresses"] = []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1"}}
	status["failureDomain"] = "zone-a"
	core.SetStatus(f.t, f.infra, status)
}

// eventuallyConnected waits until the target cluster is connected.
func (f *fixture) eventuallyConnected() {
	f.t.Helper()
	f.Eventually(func() error {
		_, err := core.Connections.Get(client.ObjectKey{Namespace: f.namespace, Name: "c"})
		return err
	}).WithTimeout(timeout).Should(Succeed())
}

// eventuallyCached waits until the core's cache has the Node with its conditions.
func (f *fixture) eventuallyCached(name string) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		connection, err := core.Connections.Get(client.ObjectKey{Namespace: f.namespace, Name: "c"})
		g.Expect(err).NotTo(HaveOccurred())
		cached, err := connection.Node(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cached).NotTo(BeNil())
		g.Expect(cached.Status.Conditions).NotTo(BeEmpty())
		g.Expect(cached.Status.Images).To(BeEmpty(), "images are not cached")
		g.Expect(cached.ManagedFields).To(BeEmpty(), "managed fields are not cached")
	}).WithTimeout(timeout).Should(Succeed())
}

// run brings a Machine of a MachineSet to Running.
func (f *fixture) run() *corev1.Node {
	f.t.Helper()
	f.createOwned()
	core.SetStatus(f.t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Provisioning")) })
	node := core.Node(f.t, f.machine.Name, f.providerID(), true)
	f.eventuallyCached(node.Name)
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(HavePrefix("True/")) })
	f.refresh(f.machine)
	return node
}

// TestBudget holds the core to two patches of the Machine, three of its status and one of the Node, and no write
// to objects that were created with their owner. That a health check finds the Machine healthy is no write of its own.
func TestBudget(t *testing.T) {
	for name, checked := range map[string]bool{"no health check": false, "health check": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			f.eventuallyConnected()
			if checked {
				f.healthCheck()
			}
			before := core.Reconciles(f.namespace)
			f.run()
			if checked {
				f.eventually(func(g Gomega, m *clusterv1.Machine) {
					g.Expect(condition(m, "HealthCheckSucceeded")).To(Equal("True/HealthCheckSucceeded"))
				})
				f.awaitsNothing()
			}
			f.withinBudget(before)
		})
	}
}

// healthCheck makes a MachineHealthCheck for the Machines of the Cluster, and waits until those are judged.
func (f *fixture) healthCheck() {
	f.t.Helper()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "c"}}
	f.Eventually(func(g Gomega) {
		g.Expect(core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		for _, kind := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
			g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, kind)).To(BeTrue(), kind)
		}
	}).WithTimeout(timeout).WithPolling(pollInterval).Should(Succeed())
	core.Create(f.t, &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "all"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: "False", TimeoutSeconds: ptr.To[int32](300)}}},
		},
	})
}

// withinBudget looks at what was written since, and at the reconciles beyond those before.
func (f *fixture) withinBudget(before int) {
	f.t.Helper()
	writes := map[string]int{}
	for _, request := range core.Requests.Writes("/" + f.machine.Name) {
		f.Expect(request.Verb).To(Equal("PATCH"), "never an update: %s", request.Path)
		f.Expect(request.Status).To(Equal(200), "no conflict: %s", request.Path)
		writes[kindOf(request.Path)]++
		f.t.Logf("%s %s", request.Path, request.Body)
	}
	f.Expect(writes["machines"]).To(BeNumerically("<=", 2), "%v", writes)
	f.Expect(writes["machines/status"]).To(BeNumerically("<=", 3), "%v", writes)
	f.Expect(writes).To(HaveLen(2), "nothing but the Machine: %v", writes)
	// One that only begins counts as well.
	f.Expect(core.Reconciles(f.namespace) - before).To(BeNumerically("<=", 14))
}

func kindOf(path string) string {
	kind := "other"
	switch {
	case len(path) == 0:
	case strings.Contains(path, "/machines/") && strings.Contains(path, "/status"):
		kind = "machines/status"
	case strings.Contains(path, "/machines/"):
		kind = "machines"
	case strings.Contains(path, "/nodes/"):
		kind = "nodes"
	}
	return kind
}

func TestHeartbeatsEnqueueNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.enqueuesNothing(func() {
		for range 5 {
			f.refresh(node)
			node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{"image"}})
			for i := range node.Status.Conditions {
				node.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
			}
			f.Expect(core.Client.Status().Update(t.Context(), node)).To(Succeed())
		}
	})

	core.NodeStatus(t, node, false)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeNotReady"))
		g.Expect(condition(m, "Ready")).To(Equal("False/NotReady"))
	})
}
