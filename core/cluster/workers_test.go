package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// pool creates a MachineDeployment that no controller of this test reconciles.
func pool(t *testing.T, namespace, name string, replicas int32) *clusterv1.MachineDeployment {
	t.Helper()
	labels := map[string]string{"pool": name}
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: ptr.To(replicas), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: labels},
				Spec: clusterv1.MachineSpec{
					ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("d")},
					InfrastructureRef: coretest.Ref(coretest.Kind(coretest.Machine, version.V1Beta2)+"Template", "t"),
				},
			},
		},
	}
	core.Create(t, deployment)
	return deployment
}

// report writes the status of a MachineDeployment.
func report(t *testing.T, deployment *clusterv1.MachineDeployment, ready int32, conditions ...metav1.Condition) {
	t.Helper()
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = deployment.Spec.Replicas, ptr.To(ready)
	deployment.Status.AvailableReplicas, deployment.Status.UpToDateReplicas = ptr.To(ready), deployment.Spec.Replicas
	deployment.Status.Conditions = conditions
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Now()
	}
	NewWithT(t).Expect(core.Client.Status().Update(t.Context(), deployment)).To(Succeed())
}

// TestWorkers: what MachineDeployments report is summed up in the Cluster, late by a few seconds and by few writes.
func TestWorkers(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	cluster := core.Cluster(t, namespace, "c")
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "WorkersAvailable")).To(Equal("True/NoWorkers"))
		g.Expect(condition(c, "WorkerMachinesReady")).To(Equal("True/NoReplicas"))
		g.Expect(condition(c, "RollingOut")).To(Equal("False/NotRollingOut"))
		g.Expect(condition(c, "Available")).To(Equal("True/Available"))
	})
	good, bad := pool(t, namespace, "good", 3), pool(t, namespace, "bad", 2)
	report(
		t,
		good,
		3,
		metav1.Condition{Type: "Available", Status: "True", Reason: "Available"},
		metav1.Condition{Type: "MachinesReady", Status: "True", Reason: "Ready"},
	)
	before, begun := len(core.Requests.Writes("/namespaces/"+namespace+"/clusters/c/status")), time.Now()
	for i := range int32(20) {
		report(t, bad, i%3, metav1.Condition{Type: "Available", Status: "False", Reason: "NotAvailable", Message: fmt.Sprint("attempt ", i)},
			metav1.Condition{Type: "MachinesReady", Status: "False", Reason: "NotReady", Message: "* Machine m: no capacity"},
			metav1.Condition{Type: "RollingOut", Status: "True", Reason: "RollingOut", Message: "rolling"})
	}
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "WorkersAvailable")).To(Equal("False/NotAvailable"))
		g.Expect(message(c, "WorkersAvailable")).To(Equal("* MachineDeployment bad: attempt 19"))
		g.Expect(condition(c, "WorkerMachinesReady")).To(Equal("False/NotReady"))
		g.Expect(message(c, "WorkerMachinesReady")).To(Equal("* MachineDeployment bad: * Machine m: no capacity"))
		g.Expect(condition(c, "RollingOut")).To(Equal("True/RollingOut"))
		g.Expect(condition(c, "Available")).To(Equal("False/NotAvailable"))
		g.Expect(c.Status.Workers.DesiredReplicas).To(HaveValue(BeEquivalentTo(5)))
		g.Expect(c.Status.Workers.ReadyReplicas).To(HaveValue(BeEquivalentTo(4)))
	})
	after := len(core.Requests.Writes("/namespaces/" + namespace + "/clusters/c/status"))
	// One in five seconds is for sums. The limit grows with the time that the reports take, so a busy computer fails nothing.
	g.Expect(after-before).To(BeNumerically("<=", 3+int(time.Since(begun).Seconds()/5)), "twenty reports are not twenty writes")
}

// TestStandaloneMachines: Machines that nothing but the Cluster owns report by themselves; those of the control plane apart.
func TestStandaloneMachines(t *testing.T) {
	namespace := core.Namespace(t)
	cluster := core.Cluster(t, namespace, "c")
	for name, labels := range map[string]map[string]string{"worker": nil, "control-plane": {clusterv1.MachineControlPlaneLabel: ""}} {
		core.Create(t, &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Spec: clusterv1.MachineSpec{
				ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("d")},
				InfrastructureRef: coretest.Ref(coretest.Kind(coretest.Machine, version.V1Beta2), name),
			},
		})
	}
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "WorkerMachinesReady")).To(Equal("False/NotReady"))
		g.Expect(message(c, "WorkerMachinesReady")).To(HavePrefix("* Machine worker: "))
		g.Expect(condition(c, "WorkerMachinesUpToDate")).To(Equal("True/NoReplicas"), "it was not compared with a template")
		g.Expect(message(c, "ControlPlaneMachinesReady")).To(HavePrefix("* Machine control-plane: "))
		g.Expect(c.Status.Workers.Replicas).To(HaveValue(BeEquivalentTo(1)))
		g.Expect(c.Status.ControlPlane.Replicas).To(HaveValue(BeEquivalentTo(1)))
	})
}

// TestAvailabilityGates: what the spec asks for counts as well.
func TestAvailabilityGates(t *testing.T) {
	namespace := core.Namespace(t)
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec: clusterv1.ClusterSpec{AvailabilityGates: []clusterv1.ClusterAvailabilityGate{
			{ConditionType: "Degraded", Polarity: clusterv1.NegativePolarityCondition},
		}},
	}
	core.Create(t, cluster)
	core.Kubeconfig(t, namespace, "c", core.Env.Kubeconfig)
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "ControlPlaneInitialized")).To(HavePrefix("True/"))
		g.Expect(condition(c, "Available")).To(Equal("Unknown/AvailableUnknown"))
		g.Expect(message(c, "Available")).To(Equal("* Degraded: not reported yet"))
	})
}

// TestFailureDomainsOfTheCluster: in both versions of the contract.
func TestFailureDomainsOfTheCluster(t *testing.T) {
	for contract, domains := range map[version.Contract]any{
		version.V1Beta1: map[string]any{"b": map[string]any{"controlPlane": true}, "a": map[string]any{}},
		version.V1Beta2: []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "controlPlane": true}},
	} {
		t.Run(string(contract), func(t *testing.T) {
			namespace := core.Namespace(t)
			kind := coretest.Kind(coretest.InfraCluster, contract)
			cluster := &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
				Spec:       clusterv1.ClusterSpec{InfrastructureRef: coretest.Ref(kind, "i")},
			}
			core.Create(t, cluster)
			infra := coretest.Object(kind, namespace, "i")
			core.Create(t, infra)
			core.SetStatus(t, infra, map[string]any{"failureDomains": domains})
			eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
				g.Expect(c.Status.FailureDomains).To(Equal([]clusterv1.FailureDomain{{Name: "a"}, {Name: "b", ControlPlane: ptr.To(true)}}))
			})
		})
	}
}

// TestFactsThatTheAPIRefuses: one value that the API of Clusters refuses does not freeze all the others.
func TestFactsThatTheAPIRefuses(t *testing.T) {
	namespace := core.Namespace(t)
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: coretest.Ref(coretest.Kind(coretest.InfraCluster, version.V1Beta2), "i")},
	}
	core.Create(t, cluster)
	infra := coretest.Object(coretest.Kind(coretest.InfraCluster, version.V1Beta2), namespace, "i")
	core.Create(t, infra)
	core.SetSpec(t, infra, map[string]any{"controlPlaneEndpoint": map[string]any{"host": strings.Repeat("h", 600), "port": int64(6443)}})
	status := coretest.Provisioned(version.V1Beta2)
	status["failureDomains"] = []any{
		map[string]any{"name": strings.Repeat("z", 300)},
		map[string]any{"name": "a"},
		map[string]any{"name": "a"},
	}
	core.SetStatus(t, infra, status)
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(c.Status.FailureDomains).To(Equal([]clusterv1.FailureDomain{{Name: "a"}}))
		g.Expect(c.Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()))
		found := meta.FindStatusCondition(c.Status.Conditions, "InfrastructureReady")
		g.Expect(found).NotTo(BeNil())
		g.Expect(found.Message).
			To(And(ContainSubstring("spec.controlPlaneEndpoint.host"), ContainSubstring("longer than 256"), ContainSubstring("occurs twice")))
	})
}

// TestLostConnectionIsReported by one event of the Cluster, and so is that it is back.
func TestLostConnectionIsReported(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	cluster := core.Cluster(t, namespace, "c")
	eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "RemoteConnectionProbe")).To(HavePrefix("True/"))
	})
	eventNote := func(reason string) func() string {
		return func() string {
			events := &eventsv1.EventList{}
			g.Expect(core.Client.List(t.Context(), events, client.InNamespace(namespace))).To(Succeed())
			for _, event := range events.Items {
				if event.Reason == reason {
					return event.Note
				}
			}
			return ""
		}
	}
	rotate(t, namespace, reaching("https://127.0.0.1:1"))
	// The condition stays True for the grace period, of which the core of the tests has 2 s.
	g.Eventually(eventNote("RemoteConnectionLost")).WithTimeout(timeout).Should(ContainSubstring("does not answer"))
	rotate(t, namespace, core.Env.Kubeconfig)
	g.Eventually(eventNote("RemoteConnectionRestored")).WithTimeout(timeout).ShouldNot(BeEmpty())
}

// rotate writes another kubeconfig into the Secret of Cluster c.
func rotate(t *testing.T, namespace string, content []byte) {
	t.Helper()
	g := NewWithT(t)
	secret := &corev1.Secret{}
	g.Expect(core.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: shared.SecretName("c")}, secret)).To(Succeed())
	secret.Data = map[string][]byte{"value": content}
	g.Expect(core.Client.Update(t.Context(), secret)).To(Succeed())
}

// reaching is a kubeconfig without credentials.
func reaching(server string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q}}]}`, server)
}
