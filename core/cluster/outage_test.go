package cluster_test

import (
	"errors"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestOutage: while the API server of the target cluster is away, what was known of a Node stays for the grace period,
// is then Unknown/ConnectionDown without any further event, and comes back with the API server.
func TestOutage(t *testing.T) {
	g := NewWithT(t)
	core.GracePeriod = 3 * time.Second
	core.Restart(t)
	t.Cleanup(func() {
		core.GracePeriod = 0
		core.Restart(t)
	})
	namespace := core.Namespace(t)
	requests := &coretest.Requests{}
	proxy, err := requests.Proxy(core.Env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	var once sync.Once
	down := func() { once.Do(func() { stop(proxy) }) }
	defer down()
	core.Create(
		t,
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}},
	)
	core.Kubeconfig(t, namespace, "c", reaching(proxy.URL))
	machine := runMachine(t, namespace)

	down()
	var unknownSince time.Time
	eventuallyMachine(t, machine, func(g Gomega, m *clusterv1.Machine) {
		for _, conditionType := range []string{"NodeReady", "NodeHealthy"} {
			found := meta.FindStatusCondition(m.Status.Conditions, conditionType)
			g.Expect(string(found.Status) + "/" + found.Reason).To(Equal("Unknown/ConnectionDown"))
			g.Expect(found.Message).To(ContainSubstring("does not answer"))
			unknownSince = found.LastTransitionTime.Time
		}
		g.Expect(m.Status.Phase).To(Equal("Running"), "an outage means nothing about the machine")
	})
	var lost *shared.NotConnectedError
	_, err = core.Connections.Get(types.NamespacedName{Namespace: namespace, Name: "c"})
	g.Expect(errors.As(err, &lost)).To(BeTrue())
	// Both times are the core's; conditions have whole seconds.
	end := lost.LastSuccess.Add(core.GracePeriod).Truncate(time.Second)
	g.Expect(unknownSince).To(BeTemporally(">=", end), "not before the grace period is over")

	rotate(t, namespace, core.Env.Kubeconfig)
	eventuallyMachine(t, machine, func(g Gomega, m *clusterv1.Machine) {
		g.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, "Ready")).To(BeTrue())
	})
}

func stop(server *httptest.Server) {
	server.Listener.Close()
	server.CloseClientConnections()
	server.Close()
}

// runMachine makes a Machine of Cluster c that runs.
func runMachine(t *testing.T, namespace string) *clusterv1.Machine {
	t.Helper()
	kind := coretest.Kind(coretest.Machine, version.V1Beta2)
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace + "-m"},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("d")}, InfrastructureRef: coretest.Ref(kind, namespace+"-m"),
		},
	}
	core.Create(t, machine)
	infra := coretest.Object(kind, namespace, machine.Name)
	infra.Object["spec"] = map[string]any{"providerID": "stand-in:///" + machine.Name}
	core.Create(t, infra)
	core.SetStatus(t, infra, coretest.Provisioned(version.V1Beta2))
	core.Node(t, machine.Name, "stand-in:///"+machine.Name, true)
	eventuallyMachine(t, machine, func(g Gomega, m *clusterv1.Machine) {
		g.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, "Ready")).To(BeTrue())
	})
	return machine
}

// eventuallyMachine waits until the Machine matches.
func eventuallyMachine(t *testing.T, machine *clusterv1.Machine, check func(Gomega, *clusterv1.Machine)) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		m := &clusterv1.Machine{}
		g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(machine), m)).To(Succeed())
		check(g, m)
	}).WithTimeout(timeout + core.GracePeriod).WithPolling(50 * time.Millisecond).Should(Succeed())
}
