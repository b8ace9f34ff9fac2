package machine_test

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
)

// stage is a point in the life of a Machine, and how to get there.
type stage struct {
	name  string
	reach func(*fixture)
	// during is what happens while the Machine is being deleted and its infrastructure still goes.
	during func(*fixture)
}

// stages are the points at which a deletion can begin.
var stages = []stage{
	{name: "nothing exists", reach: func(f *fixture) { f.createMachine() }},
	{name: "nothing exists, and its cluster cannot be reached", reach: func(f *fixture) { f.createMachine(); f.severTarget() }},
	{name: "the bootstrap config is made, the infrastructure not yet", reach: func(f *fixture) { f.createMachineOnly(); f.config = f.child(coretest.Config) }},
	{name: "the infrastructure is made, the bootstrap config not yet", reach: func(f *fixture) { f.createMachineOnly(); f.infra = f.child(coretest.Machine) }},
	{name: "objects exist, not adopted", reach: func(f *fixture) {
		f.machine.Finalizers = []string{clusterv1.MachineFinalizer}
		f.createObjects()
		f.createMachine()
	}},
	{name: "created owned", reach: func(f *fixture) { f.createOwned() }},
	{name: "bootstrap data exist", reach: func(f *fixture) { f.createOwned(); f.bootstrapped() }},
	{name: "data Secret of the user", reach: func(f *fixture) {
		f.machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("mine")}
		f.createMachineOnly()
		f.infra = f.child(coretest.Machine)
	}},
	{name: "the machine is being launched", reach: func(f *fixture) { f.createOwned(); f.bootstrapped() }, during: func(f *fixture) {
		core.SetSpec(f.t, f.infra, map[string]any{"providerID": f.providerID()})
		core.Node(f.t, f.machine.Name, f.providerID(), true)
	}},
	{name: "the machine exists but is not provisioned, and its Node has joined", reach: func(f *fixture) {
		f.createOwned()
		core.SetSpec(f.t, f.infra, map[string]any{"providerID": f.providerID()})
		core.Node(f.t, f.machine.Name, f.providerID(), true)
	}},
	{name: "provisioned", reach: func(f *fixture) { f.createOwned(); f.provision() }},
	{name: "provisioned, and the Node joins while it goes", reach: func(f *fixture) {
		f.createOwned()
		f.bootstrapped()
		f.provision()
		f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Provisioned")) })
	}, during: func(f *fixture) { core.Node(f.t, f.machine.Name, f.providerID(), true) }},
	{name: "running", reach: func(f *fixture) { f.run() }},
	{name: "the Node has gone", reach: func(f *fixture) { f.Expect(core.Client.Delete(f.t.Context(), f.run())).To(Succeed()) }},
	{name: "the infrastructure has gone", reach: func(f *fixture) { f.run(); f.Expect(core.Client.Delete(f.t.Context(), f.infra)).To(Succeed()) }},
	{name: "the bootstrap config has gone", reach: func(f *fixture) { f.run(); f.Expect(core.Client.Delete(f.t.Context(), f.config)).To(Succeed()) }},
	{name: "the MachineSet has gone", reach: func(f *fixture) {
		f.run()
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "s"}}
		f.Expect(core.Client.Delete(f.t.Context(), set)).To(Succeed())
	}},
	{name: "the Cluster has never been", reach: func(f *fixture) {
		f.machine.Spec.ClusterName = "never"
		f.machine.Finalizers = []string{clusterv1.MachineFinalizer}
		f.createMachine()
		f.createObjects(*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine")))
		f.provision()
	}},
	{name: "kinds have never been installed", reach: func(f *fixture) {
		f.machine.Spec.Bootstrap.ConfigRef.Kind, f.machine.Spec.InfrastructureRef.Kind = "Nowhere", "Nowhere"
		f.createMachine()
	}},
	{name: "the kind of the infrastructure has been uninstalled", reach: func(f *fixture) { f.runOnPassingKind() }},
}

// child creates one object of the Machine, owned by it.
func (f *fixture) child(role string) *unstructured.Unstructured {
	f.t.Helper()
	obj := coretest.Object(
		coretest.Kind(role, f.contract),
		f.namespace,
		f.machine.Name,
		*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine")),
	)
	obj.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
	core.Create(f.t, obj)
	return obj
}

// bootstrapped has the stand-in bootstrap data exist.
func (f *fixture) bootstrapped() {
	f.t.Helper()
	core.SetStatus(f.t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Provisioning")) })
}

// severTarget ends the connection to the target cluster until the end of the test.
func (f *fixture) severTarget() {
	f.t.Helper()
	core.Connections.Remove(client.ObjectKey{Namespace: f.namespace, Name: "c"})
}

// runOnPassingKind brings a Machine to Running whose infrastructure is of a kind that is uninstalled then.
func (f *fixture) runOnPassingKind() {
	f.t.Helper()
	const kind = "Passing"
	crd := coretest.CRD(kind, f.contract)
	core.Create(f.t, crd)
	f.machine.Spec.InfrastructureRef.Kind = kind
	f.createMachineOnly()
	f.config = f.child(coretest.Config)
	f.infra = coretest.Object(
		kind,
		f.namespace,
		f.machine.Name,
		*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine")),
	)
	f.infra.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
	f.Eventually(func() error { return core.Client.Create(f.t.Context(), f.infra) }).WithTimeout(timeout).Should(Succeed())
	f.bootstrapped()
	core.Node(f.t, f.machine.Name, f.providerID(), true)
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal("Running")) })
	f.Expect(core.Client.Delete(f.t.Context(), crd)).To(Succeed())
	f.infra = nil
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/CRDMissing"))
	})
}

// leavesNothing checks that nothing of the Machine is left, neither in the management cluster nor in the target.
func (f *fixture) leavesNothing() {
	f.t.Helper()
	f.eventuallyGone(f.machine)
	for _, role := range []string{coretest.Machine, coretest.Config} {
		f.eventuallyGone(coretest.Object(coretest.Kind(role, f.contract), f.namespace, f.machine.Name))
	}
	f.eventuallyGone(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.machine.Name}})
}
