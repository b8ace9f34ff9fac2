package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// TestANodeThatClaimsAnotherMachinesID is the attack of a machine that has not joined: with its own certificate, which binds
// the Node's name, it registers a Node with the provider ID of Machine B.
func TestANodeThatClaimsAnotherMachinesID(t *testing.T) {
	t.Parallel()
	// attack provisions B and A, and has A's machine register with B's provider ID.
	attack := func(t *testing.T, prepare func(b *fixture), places ...func(a *fixture)) (b *fixture, stolen *corev1.Node) {
		t.Helper()
		b = newFixture(t, version.V1Beta2)
		a := b.beside("a")
		for _, place := range places {
			place(a)
		}
		a.createMachine()
		a.provisionAs("stand-in:///" + a.machine.Name)
		b.createOwned()
		b.bootstrapped()
		prepare(b)
		stolen = core.Node(t, a.machine.Name, b.providerID(), true)
		b.eventuallyCached(stolen.Name)
		return b, stolen
	}
	notLinked := func(b *fixture, stolen *corev1.Node) {
		b.t.Helper()
		b.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(condition(m, "InfrastructureReady")).To(HavePrefix("True/"))
			g.Expect(condition(m, "NodeReady")).To(Equal("Unknown/InspectionFailed"))
			g.Expect(message(m, "NodeReady")).To(ContainSubstring("Node " + stolen.Name))
		})
		b.awaitsNothing()
		b.refresh(b.machine)
		b.Expect(b.machine.Status.NodeRef.Name).To(BeEmpty())
		b.refresh(stolen)
		b.Expect(stolen.Annotations).NotTo(HaveKey(clusterv1.MachineAnnotation))
	}
	joins := func(b *fixture, name string) {
		b.t.Helper()
		core.Node(b.t, name, b.providerID(), true)
		b.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(m.Status.NodeRef.Name).To(Equal(name))
			g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
			g.Expect(message(m, "NodeReady")).To(ContainSubstring("claims"), "who lies is named")
		})
	}
	t.Run("the bootstrap provider says the Node's name", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) {
			core.SetStatus(t, b.config, map[string]any{"nodeName": b.machine.Name})
			b.provision()
		})
		notLinked(b, stolen)
		joins(b, b.machine.Name)
		b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
		b.eventuallyGone(b.machine)
		b.refresh(stolen)
		b.Expect(stolen.DeletionTimestamp).To(BeNil())
	})
	t.Run("the infrastructure says the Node's name", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) { b.provision(); b.hostName("b.internal." + b.namespace) })
		notLinked(b, stolen)
		joins(b, "b.internal."+b.namespace)
	})
	t.Run("the Node's name is not reported, but it is the name of another Machine", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) { b.provision() })
		notLinked(b, stolen)
		joins(b, b.machine.Name)
	})
	t.Run("the Node's name is not reported, but it is the name of a Machine of another Cluster with the same target", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) { b.provision() }, func(a *fixture) {
			a.namespace = core.Namespace(t)
			a.machine.Namespace, a.machine.Spec.ClusterName = a.namespace, "d"
			core.Cluster(t, a.namespace, "d")
			a.Eventually(func() error {
				_, err := core.Connections.Get(client.ObjectKey{Namespace: a.namespace, Name: "d"})
				return err
			}).WithTimeout(timeout).Should(Succeed())
		})
		notLinked(b, stolen)
		joins(b, b.machine.Name)
	})
	t.Run("the other Machine, whose name it is, is no longer there", func(t *testing.T) {
		var other *fixture
		b, stolen := attack(t, func(b *fixture) { b.provision() }, func(a *fixture) { other = a })
		notLinked(b, stolen)
		b.Expect(core.Client.Delete(t.Context(), other.machine)).To(Succeed())
		b.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(stolen.Name)) })
	})
	t.Run("the Machine is deleted before its own machine has joined", func(t *testing.T) {
		b, stolen := attack(t, func(b *fixture) {
			core.SetStatus(t, b.config, map[string]any{"nodeName": b.machine.Name})
			b.provision()
		})
		b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
		b.eventuallyGone(b.machine)
		b.refresh(stolen)
		b.Expect(stolen.DeletionTimestamp).To(BeNil())
		b.Expect(stolen.Spec.Unschedulable).To(BeFalse())
	})
}

// hostName has the infrastructure report a host name.
func (f *fixture) hostName(name string) {
	f.t.Helper()
	f.refresh(f.infra)
	addresses := []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1"}, map[string]any{"type": "InternalDNS", "address": name}}
	core.SetStatus(f.t, f.infra, map[string]any{"addresses": addresses})
}

// TestALinkedNodeIsNotMovedByAClaim: the Node of a running Machine is deleted, and a Node of another name claims its provider ID.
func TestALinkedNodeIsNotMovedByAClaim(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	double := core.Node(t, f.machine.Name+"-double", f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"), "a claim affects no other Machine")
		g.Expect(message(m, "NodeReady")).To(ContainSubstring(double.Name))
	})
	f.Expect(core.Client.Delete(t.Context(), node)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeDeleted"))
		g.Expect(message(m, "NodeReady")).To(ContainSubstring(double.Name))
		g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name))
	})
	f.awaitsNothing()
	f.refresh(double)
	f.Expect(double.Annotations).NotTo(HaveKey(clusterv1.MachineAnnotation))
}

// TestOneOfSeveralNodesIsAnotherMachines: what distinguishes them may come later, and with another Machine alone.
func TestOneOfSeveralNodesIsAnotherMachines(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]func(f *fixture, node string){
		"by its name": func(f *fixture, node string) {
			f.machine.Name = node
			f.createMachine()
		},
		"by its host name": func(f *fixture, node string) {
			f.createMachine()
			f.provisionAs("stand-in:///" + f.machine.Name)
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "InfrastructureReady")).To(HavePrefix("True/"))
			})
			f.hostName(node)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			f.createOwned()
			core.Node(t, f.namespace+"-b", f.providerID(), true)
			core.Node(t, f.namespace+"-a", f.providerID(), true)
			f.provision()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "NodeHealthy")).To(Equal("Unknown/InternalError"))
			})
			f.awaitsNothing()
			claim(f.beside("other"), f.namespace+"-a")
			f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(f.namespace + "-b")) })
		})
	}
}
