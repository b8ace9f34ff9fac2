package machinehealth_test

import (
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/health"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest/workers"
)

// TestNodesThatCannotBeRead: nothing is concluded of Nodes while there is no connection, and what the provider says counts.
func TestNodesThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.kubeconfig = []byte("none")
	w.machine("linked", "", func(*clusterv1.Machine) {})
	w.status("linked", func(s *clusterv1.MachineStatus) { s.NodeRef.Name = w.nodeName("linked") })
	w.machine("ended", "")
	w.status("ended", func(s *clusterv1.MachineStatus) {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: clusterv1.MachineInfrastructureReadyCondition, Status: "False",
			Reason: "InstanceTerminated", LastTransitionTime: metav1.Now()})
	})
	w.start()
	w.check("workers")
	w.becomes("ended", succeeded, "False/UnhealthyMachine")
	w.becomes("ended", owner, waiting)
	w.atRest()
	w.G.Expect(w.conditionOf("linked", succeeded)).To(BeEmpty())
	w.counts("workers", 2, 0, 0, "True/RemediationAllowed")
}

// frozen is a freeze that the test ends.
type frozen struct {
	cluster   client.ObjectKey
	mu        sync.Mutex
	notBefore time.Time
	state     freeze.State
	onChange  []func(client.ObjectKey)
}

func (f *frozen) Frozen(client.ObjectKey) freeze.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *frozen) NotBefore(client.ObjectKey) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.notBefore
}

func (f *frozen) OnChange(g func(client.ObjectKey)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onChange = append(f.onChange, g)
}

func (f *frozen) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notBefore, f.state = time.Time{}, freeze.State{}
	for _, g := range f.onChange {
		g(f.cluster)
	}
}

// TestNothingIsJudgedDuringAFreeze, and its end enqueues what waits.
func TestNothingIsJudgedDuringAFreeze(t *testing.T) {
	w := newWorld(t)
	stop := &frozen{cluster: w.key(workers.ClusterName), notBefore: time.Now().Add(100 * 365 * 24 * time.Hour)}
	w.freeze = stop
	w.machine("a", "False")
	w.machine("b", "True")
	w.start()
	w.check("workers")
	w.becomes("b", succeeded, well)
	w.atRest()
	w.G.Expect(w.conditionOf("a", succeeded)).To(BeEmpty())
	stop.end()
	w.becomes("a", succeeded, ill)
}

// TestTheDefaultPolicy judges the Machines that no MachineHealthCheck selects, and asks their owners. An annotation of the
// MachineDeployment gives its Machines another timeout.
func TestTheDefaultPolicy(t *testing.T) {
	w := newWorld(t)
	w.defaults = health.Defaults{CreationTimeout: time.Hour, HealthTimeout: time.Second, NodeConditions: []string{"KernelDeadlock"}}
	labelled := func(m *clusterv1.Machine) { m.Labels[clusterv1.MachineDeploymentNameLabel] = "d" }
	w.machine("a", "False")
	w.machine("b", "True", func(m *clusterv1.Machine) { m.Labels["pool"] = "b" })
	w.machine("slow", "", labelled, func(m *clusterv1.Machine) { m.Labels["pool"] = "b" })
	w.status("slow", func(s *clusterv1.MachineStatus) { s.Initialization.InfrastructureProvisioned = new(true) })
	w.machine("leader", "False", func(m *clusterv1.Machine) {
		m.Labels["pool"], m.Labels[clusterv1.MachineControlPlaneLabel] = "b", ""
	})
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "d"},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: workers.ClusterName,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Template:    workers.MachineTemplate("t"),
		},
	}
	w.Create(deployment)
	w.start()
	w.becomes("b", succeeded, well)
	w.becomes("a", owner, waiting)
	w.G.Expect(w.conditionOf("slow", succeeded)).To(BeEmpty())
	w.G.Expect(w.conditionOf("leader", succeeded)).To(BeEmpty())
	change(w, deployment, func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{health.MCMCreationTimeoutAnnotation: "1s"}
	})
	w.becomes("slow", succeeded, "False/NodeStartupTimeout")

	// A MachineHealthCheck that selects one of them has its own opinion.
	w.check("workers", func(c *clusterv1.MachineHealthCheck) { c.Spec.Checks.UnhealthyNodeConditions[0].Status = "Unknown" })
	w.becomes("a", succeeded, well)
	m := &clusterv1.Machine{}
	w.G.Expect(direct.Get(w.Ctx, w.key("slow"), m)).To(Succeed())
	w.G.Expect(meta.FindStatusCondition(m.Status.Conditions, succeeded).Message).To(HavePrefix(health.DefaultName + ": "))
}

// TestANodeThatTwoMachinesClaim says nothing about either.
func TestANodeThatTwoMachinesClaim(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.machine("b", "")
	w.status("b", func(s *clusterv1.MachineStatus) { s.NodeRef.Name = w.nodeName("a") })
	w.machine("c", "False")
	w.start()
	w.check("workers")
	w.becomes("c", succeeded, ill)
	w.atRest()
	w.G.Expect(w.conditionOf("a", succeeded)).To(BeEmpty())
	w.G.Expect(w.conditionOf("b", succeeded)).To(BeEmpty())
}
