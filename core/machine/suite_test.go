package machine_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// core is the running core that the tests share; each test has a namespace of its own.
var core *coretest.Core

const (
	// timeout is how long a test waits for what must happen, and pollInterval how often it looks.
	timeout, pollInterval = time.Minute, 50 * time.Millisecond
	// quiet is for how long nothing happens once a controller has come to rest: longer than what it polls in these tests.
	quiet = 2 * time.Second
)

func TestMain(m *testing.M) {
	os.Exit(coretest.Main(m, func(c *coretest.Core) { core = c }))
}

// fixture is a Cluster with one Machine and its stand-in objects.
type fixture struct {
	*WithT
	t         *testing.T
	contract  version.Contract
	namespace string
	machine   *clusterv1.Machine
	config    *unstructured.Unstructured
	infra     *unstructured.Unstructured
}

// newFixture makes a Cluster. Nothing else exists yet; names carry the namespace, since Nodes have none.
func newFixture(t *testing.T, contract version.Contract) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), t: t, contract: contract, namespace: core.Namespace(t)}
	core.Cluster(t, f.namespace, "c")
	f.machine = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.namespace + "-m"},
		Spec: clusterv1.MachineSpec{
			ClusterName:       "c",
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: coretest.Ref(coretest.Kind(coretest.Config, contract), f.namespace+"-m")},
			InfrastructureRef: coretest.Ref(coretest.Kind(coretest.Machine, contract), f.namespace+"-m"),
		},
	}
	return f
}

// providerID is the provider ID of the fixture's machine.
func (f *fixture) providerID() string { return "stand-in:///" + f.machine.Name }

// createMachine creates the Machine as a person would.
func (f *fixture) createMachine() {
	f.t.Helper()
	core.Create(f.t, f.machine)
}

// createOwned creates the Machine and its objects as a MachineSet does: all of it owned, nothing left to write.
func (f *fixture) createOwned() {
	f.t.Helper()
	f.createMachineOnly()
	f.createObjects(*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine")))
}

// createMachineOnly creates the Machine as a MachineSet does, before its objects.
func (f *fixture) createMachineOnly() {
	f.t.Helper()
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "s"},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c", Replicas: ptr.To[int32](0), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"x": "y"}},
				Spec:       *f.machine.Spec.DeepCopy(),
			},
		},
	}
	core.Create(f.t, set)
	f.machine.Finalizers = []string{clusterv1.MachineFinalizer}
	f.machine.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "s"}
	f.machine.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
	core.Create(f.t, f.machine)
}

// createObjects creates bootstrap config and infrastructure.
func (f *fixture) createObjects(owners ...metav1.OwnerReference) {
	f.t.Helper()
	f.config = coretest.Object(coretest.Kind(coretest.Config, f.contract), f.namespace, f.machine.Name, owners...)
	f.infra = coretest.Object(coretest.Kind(coretest.Machine, f.contract), f.namespace, f.machine.Name, owners...)
	for _, obj := range []*unstructured.Unstructured{f.config, f.infra} {
		if len(owners) > 0 {
			obj.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
		}
		core.Create(f.t, obj)
	}
}

// refresh reads an object again.
func (f *fixture) refresh(obj client.Object) {
	f.t.Helper()
	f.Expect(core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
}

// eventually waits until the Machine matches.
func (f *fixture) eventually(check func(Gomega, *clusterv1.Machine)) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		m := &clusterv1.Machine{}
		g.Expect(core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(f.machine), m)).To(Succeed())
		check(g, m)
	}).WithTimeout(timeout).WithPolling(pollInterval).Should(Succeed())
}

// eventuallyGone waits until the object does not exist.
func (f *fixture) eventuallyGone(obj client.Object) {
	f.t.Helper()
	f.Eventually(func() bool {
		err := core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(obj), obj)
		return client.IgnoreNotFound(err) == nil && err != nil
	}).WithTimeout(timeout).WithPolling(pollInterval).Should(BeTrue(), "%T %s should be gone", obj, obj.GetName())
}

// awaitsNothing waits until no Machine of the test is reconciled for a while, neither in a loop nor by polling.
func (f *fixture) awaitsNothing() {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		before := core.Reconciles(f.namespace)
		g.Consistently(func() int { return core.Reconciles(f.namespace) - before }).WithTimeout(quiet).Should(BeZero())
	}).WithTimeout(timeout).Should(Succeed(), "the controller should come to rest")
}

// enqueuesNothing checks that a change enqueues no Machine of the test. One that is reconciled by itself meanwhile, at a deadline from its
// creation, is no reason to fail: the change is repeated then.
func (f *fixture) enqueuesNothing(change func()) {
	f.t.Helper()
	f.awaitsNothing()
	f.Eventually(func(g Gomega) {
		before := core.Reconciles(f.namespace)
		change()
		g.Consistently(func() int { return core.Reconciles(f.namespace) - before }).WithTimeout(quiet / 2).Should(BeZero())
	}).WithTimeout(timeout).Should(Succeed(), "the change should enqueue nothing")
}

// condition returns status and reason of a condition, for matching.
func condition(m *clusterv1.Machine, conditionType string) string {
	found := meta.FindStatusCondition(m.Status.Conditions, conditionType)
	if found == nil {
		return "absent"
	}
	return string(found.Status) + "/" + found.Reason
}

func message(m *clusterv1.Machine, conditionType string) string {
	if found := meta.FindStatusCondition(m.Status.Conditions, conditionType); found != nil {
		return found.Message
	}
	return ""
}
