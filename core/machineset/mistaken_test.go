package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// strange makes a Machine that is not of the set, with bootstrap config and infrastructure of its own.
func (w *world) strange(name string) (machine *clusterv1.Machine, own []*unstructured.Unstructured) {
	machine = w.orphan(name)
	machine.Labels = map[string]string{"pool": "other"}
	machine.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: coretest.Ref(workers.ConfigKind, name)}
	w.Create(machine)
	for _, kind := range workers.ChildKinds {
		child := coretest.Object(kind, w.Namespace, name, *metav1.NewControllerRef(machine, machineKind))
		child.SetAnnotations(map[string]string{"gone": "not yet", "note": "a's"})
		w.Create(child)
		own = append(own, child)
	}
	return machine, own
}

// TestRemediationOfAMistakenMachine: Machine B of a set refers to bootstrap config and infrastructure of Machine A, which is
// none of the set's. Neither what reaches Machines in place nor the remediation of B touches anything of A's.
func TestRemediationOfAMistakenMachine(t *testing.T) {
	t.Parallel()
	for name, remediate := range map[string]func(w *world, b *clusterv1.Machine){
		"a health check has found it unhealthy": func(w *world, b *clusterv1.Machine) { w.findUnhealthy(b.Name) },
		"a user demands it too": func(w *world, b *clusterv1.Machine) {
			w.annotate(b, clusterv1.RemediateMachineAnnotation, "")
			w.findUnhealthy(b.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, own := w.strange("a")
			b := w.orphan("b")
			b.Spec.Bootstrap, b.Spec.InfrastructureRef = a.Spec.Bootstrap, a.Spec.InfrastructureRef
			b.Finalizers = []string{clusterv1.MachineFinalizer}
			w.Create(b)
			w.set(2, func(set *clusterv1.MachineSet) { set.Spec.Template.Annotations = map[string]string{"gone": "soon"} })
			w.start(t)
			w.Eventually(func(g Gomega) {
				g.Expect(livingNames(w)).To(And(HaveLen(3), ContainElements("a", "b")))
				g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
				g.Expect(b.Annotations).To(And(HaveKey(AdoptedAnnotation), HaveKeyWithValue("gone", "soon")))
			})
			w.update(inPlace)
			w.Eventually(func(g Gomega) {
				g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
				g.Expect(b.Annotations).To(And(HaveKeyWithValue("note", "new"), Not(HaveKey("gone"))))
			})
			remediate(w, b)
			w.becomes(b.Name, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
			w.Eventually(func(g Gomega) {
				g.Expect(livingNames(w)).To(And(HaveLen(2), ContainElement("a"), Not(ContainElement("b"))))
			})
			ending := &clusterv1.Machine{}
			w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(b), ending)).To(Succeed())
			before := ending.DeepCopy()
			ending.Finalizers = nil
			w.G.Expect(direct.Patch(w.Ctx, ending, client.MergeFrom(before))).To(Succeed())
			w.Eventually(func(g Gomega) {
				g.Expect(livingNames(w)).To(And(HaveLen(3), ContainElement("a"), Not(ContainElement("b"))), "B is replaced")
				g.Expect(w.current().Status.Replicas).To(HaveValue(BeEquivalentTo(2)))
			})
			w.untouched(append(objects(own), a)...)
		})
	}
}

// TestATemplateReachesWhatHasNoController: what an adopted Machine refers to may not have been taken over by it yet.
func TestATemplateReachesWhatHasNoController(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, own := w.strange("early")
	for _, child := range own {
		before := child.DeepCopy()
		child.SetOwnerReferences(nil)
		w.G.Expect(direct.Patch(w.Ctx, child, client.MergeFrom(before))).To(Succeed())
	}
	machine := &clusterv1.Machine{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: "early"}, machine)).To(Succeed())
	before := machine.DeepCopy()
	machine.Labels["pool"] = "a"
	w.G.Expect(direct.Patch(w.Ctx, machine, client.MergeFrom(before))).To(Succeed())
	w.set(1)
	w.start(t)
	w.Eventually(func(g Gomega) {
		for _, kind := range workers.ChildKinds {
			g.Expect(w.child(g, kind, "early").GetLabels()).To(HaveKeyWithValue("pool", "a"))
		}
	})
}

func objects(list []*unstructured.Unstructured) []client.Object {
	all := make([]client.Object, 0, len(list)+1)
	for _, object := range list {
		all = append(all, object)
	}
	return all
}

// untouched checks that nothing has written objects since they were created.
func (w *world) untouched(list ...client.Object) {
	for _, object := range list {
		now := &unstructured.Unstructured{}
		kind, err := direct.GroupVersionKindFor(object)
		w.G.Expect(err).NotTo(HaveOccurred())
		now.SetGroupVersionKind(kind)
		w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(object), now)).To(Succeed())
		w.G.Expect(now.GetResourceVersion()).To(Equal(object.GetResourceVersion()), "%s %s has labels %v and annotations %v",
			kind.Kind, object.GetName(), now.GetLabels(), now.GetAnnotations())
	}
}
