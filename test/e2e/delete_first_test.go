package e2e

import (
	"path"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/sandbox"
)

// protected is a Machine whose Node has a Pod that a budget protects: no disruption is allowed.
type protected struct {
	*drains
	machine *clusterv1.Machine
	infra   *infrav1.AWSMachine
	config  *bootstrapv1.CloudConfig
}

// TestDelete_CAPI10710_AnyOrderOfDeletion_WaitsForDrain deletes the objects of a machine in each order that users, tools and the garbage
// collector have. The instance stays as long as the budget allows no disruption, and then all ends and leaves nothing.
func TestDelete_CAPI10710_AnyOrderOfDeletion_WaitsForDrain(t *testing.T) {
	rolling.takeTurn(t)
	s, err := sandbox.Start(suite.ctx, sandbox.Options{LogDir: filepath.Join(suite.logs, "delete-first"), Unbooted: true})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(s.Stop()).To(Succeed()) })
	for _, scenario := range []struct {
		name   string
		delete func(*protected)
	}{
		{"foreground", (*protected).deleteInForeground},
		{"infrastructure", (*protected).deleteInfrastructure},
		{"bootstrap", (*protected).deleteBootstrap},
		{"export", (*protected).applyExport},
		{"namespace", (*protected).deleteNamespace},
		{"definition", (*protected).deleteDefinition},
	} {
		ok := t.Run(scenario.name, func(t *testing.T) {
			p := newProtected(t, s, "first-"+scenario.name)
			scenario.delete(p)
			p.awaitDraining()
			p.staysHeld()
			none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`))
			p.Expect(p.target.Patch(p.ctx, budgetNamed(p.pods), none)).To(Succeed())
			p.eventuallyGone(p.machine, p.infra, p.config)
			p.Eventually(p.live).Should(BeEmpty())
			p.Expect(p.nodes()).NotTo(HaveKey(p.machine.Status.NodeRef.Name))
		})
		if !ok {
			return
		}
	}
}

func newProtected(t *testing.T, s *sandbox.Sandbox, namespace string) *protected {
	t.Helper()
	w := newWorldWithin(t, s, namespace, manyWait)
	w.start(0)
	p := &protected{drains: &drains{world: w, pods: namespace + "-pods"}, machine: w.makeMachine("m-" + namespace)}
	w.Expect(w.scenario.AwaitRunning(w.ctx, 1)).To(Succeed())
	p.makeNamespace()
	p.read()
	node := &corev1.Node{}
	p.Expect(p.target.Get(p.ctx, client.ObjectKey{Name: p.machine.Status.NodeRef.Name}, node)).To(Succeed())
	p.prepareBlocked(node)
	p.awaitReady()
	return p
}

// read reads the three objects.
func (p *protected) read() {
	p.t.Helper()
	p.infra, p.config = &infrav1.AWSMachine{}, &bootstrapv1.CloudConfig{}
	for _, object := range []client.Object{p.machine, p.infra, p.config} {
		p.Expect(p.control.Get(p.ctx, client.ObjectKey{Namespace: p.namespace, Name: p.machine.Name}, object)).To(Succeed())
	}
}

func (p *protected) awaitDraining() {
	p.t.Helper()
	p.Eventually(func() string {
		m := &clusterv1.Machine{}
		if err := p.control.Get(p.ctx, client.ObjectKeyFromObject(p.machine), m); err != nil {
			return err.Error()
		}
		return reasonOf(m.Status.Conditions, clusterv1.MachineDeletingCondition)
	}).Should(Equal(clusterv1.MachineDeletingDrainingNodeReason))
}

// staysHeld checks for a while that the instance runs, and that its Pod is not evicted.
func (p *protected) staysHeld() {
	p.t.Helper()
	p.Consistently(func(g Gomega) {
		g.Expect(p.live()).To(HaveKey(path.Base(p.machine.Spec.ProviderID)))
		g.Expect(p.nodes()).To(HaveKey(p.machine.Status.NodeRef.Name))
		p.untouched("blocked")
	}, 15*time.Second, time.Second).Should(Succeed())
}

func (p *protected) eventuallyGone(objects ...client.Object) {
	p.t.Helper()
	for _, object := range objects {
		p.Eventually(func() bool {
			err := p.control.Get(p.ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
			return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
		}).Should(BeTrue(), "%T %s", object, object.GetName())
	}
}

// awaitReport waits until the Machine, which is not being deleted, reports that the provider keeps the instance.
func (p *protected) awaitReport() {
	p.t.Helper()
	p.awaitCondition(p.machine, p.machine.GetConditions, clusterv1.MachineInfrastructureReadyCondition,
		reports(driverv1.WaitingForMachineDeletionReason, "Delete the Machine to drain its Node"))
	p.Expect(p.machine.DeletionTimestamp).To(BeNil())
}

func (p *protected) delete(object client.Object, opts ...client.DeleteOption) {
	p.t.Helper()
	p.Expect(p.control.Delete(p.ctx, object, opts...)).To(Succeed())
}

var inForeground = client.PropagationPolicy(metav1.DeletePropagationForeground)

func (p *protected) deleteInForeground() { p.delete(p.machine, inForeground) }

func (p *protected) deleteInfrastructure() {
	p.delete(p.infra, inForeground)
	p.awaitReport()
	p.staysHeld()
	p.delete(p.machine)
}

func (p *protected) deleteBootstrap() {
	p.delete(p.config)
	p.eventuallyGone(p.config)
	p.staysHeld()
	p.delete(p.machine)
}

// applyExport loses the objects and creates them again as they were exported: without a status, with the owner references of before. The
// garbage collector deletes what names an owner that does not exist.
func (p *protected) applyExport() {
	managers := []*sandbox.Manager{p.sandbox.Core, p.sandbox.AWS, p.sandbox.CloudConfig}
	for _, manager := range managers {
		manager.Stop()
	}
	p.read()
	objects := []client.Object{p.infra.DeepCopy(), p.config.DeepCopy(), p.machine.DeepCopy()}
	for _, object := range objects {
		lost := object.DeepCopyObject().(client.Object)
		p.Expect(p.control.Patch(p.ctx, lost, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		p.Expect(client.IgnoreNotFound(p.control.Delete(p.ctx, lost))).To(Succeed())
	}
	p.eventuallyGone(objects...)
	p.Expect(p.sandbox.Core.Start(p.ctx)).To(Succeed()) // Its webhooks admit the Machine.
	for _, object := range objects {
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetManagedFields(nil)
		p.Expect(p.control.Create(p.ctx, object)).To(Succeed())
	}
	for _, manager := range managers[1:] {
		p.Expect(manager.Start(p.ctx)).To(Succeed())
	}
	p.Eventually(func(g Gomega) {
		infra := &infrav1.AWSMachine{}
		g.Expect(p.control.Get(p.ctx, client.ObjectKeyFromObject(p.infra), infra)).To(Succeed())
		g.Expect(infra.DeletionTimestamp).NotTo(BeNil(), "the garbage collector deletes it")
		g.Expect(reasonOf(infra.Status.Conditions, driverv1.ReadyCondition)).To(Equal(driverv1.WaitingForMachineDeletionReason))
	}).Should(Succeed())
	p.staysHeld()
	p.delete(p.machine)
}

// deleteNamespace deletes the namespace of all objects; the Pod is in another one.
func (p *protected) deleteNamespace() {
	p.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	p.eventuallyGone(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: sandbox.SampleCluster + "-kubeconfig"}})
}

// deleteDefinition deletes the CRD while the provider is down, as the deletion of its components does, and starts the provider again. The
// next test needs the definition.
func (p *protected) deleteDefinition() {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	p.Expect(p.control.Get(p.ctx, client.ObjectKey{Name: "awsmachines." + infrav1.GroupVersion.Group}, crd)).To(Succeed())
	p.sandbox.AWS.Stop()
	p.delete(crd.DeepCopy())
	p.Eventually(func(g Gomega) {
		infra := &infrav1.AWSMachine{}
		g.Expect(p.control.Get(p.ctx, client.ObjectKeyFromObject(p.infra), infra)).To(Succeed())
		g.Expect(infra.DeletionTimestamp).NotTo(BeNil())
	}).Should(Succeed())
	p.Expect(p.sandbox.AWS.Start(p.ctx)).To(Succeed())
	p.awaitReport()
	p.staysHeld()
	p.delete(p.machine)
	again := crd.DeepCopy()
	again.SetUID("")
	again.SetResourceVersion("")
	again.SetManagedFields(nil)
	unstructured.RemoveNestedField(again.Object, "status")
	p.t.Cleanup(func() {
		p.Eventually(func() error { return p.control.Create(p.ctx, again.DeepCopy()) }).Should(Succeed())
	})
}

func budgetNamed(namespace string) client.Object {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "blocked"}}
}
