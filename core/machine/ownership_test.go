package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestForeignObjects: an object that another controller owns is left alone and named, on either side, and the
// Machine continues when it is released.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		t.Run(string(contract), func(t *testing.T) {
			f := newFixture(t, contract)
			other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "other"}}
			core.Create(t, other)
			owner := *metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			f.createObjects(owner)
			f.createMachine()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				for _, conditionType := range []string{"BootstrapConfigReady", "InfrastructureReady"} {
					g.Expect(condition(m, conditionType)).To(Equal("False/OwnedElsewhere"))
					g.Expect(message(m, conditionType)).To(ContainSubstring("is controlled by ConfigMap other"))
				}
			})
			f.eventuallyRecorded("OwnedElsewhere")
			f.awaitsNothing()

			for _, obj := range []*unstructured.Unstructured{f.config, f.infra} {
				f.refresh(obj)
				f.Expect(obj.GetOwnerReferences()).To(ConsistOf(owner))
				before := obj.DeepCopy()
				obj.SetOwnerReferences(nil)
				f.Expect(core.Client.Patch(t.Context(), obj, client.MergeFrom(before))).To(Succeed())
			}
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "BootstrapConfigReady")).To(Equal("False/NotReady"))
				g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"))
				f.refresh(f.infra)
				g.Expect(f.infra.GetOwnerReferences()).To(ConsistOf(HaveField("UID", m.UID)))
			})
		})
	}
}

// TestOwnersOfAnOlderVersion: references that name an API version which is no longer current are brought up to date, by
// one write each. The garbage collector cannot follow one to a version that is not served any more.
func TestOwnersOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	const older = "cluster.x-k8s.io/v1beta1"
	cluster := &clusterv1.Cluster{}
	f.Expect(core.Client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "c"}, cluster)).To(Succeed())
	f.machine.OwnerReferences = []metav1.OwnerReference{{APIVersion: older, Kind: "Cluster", Name: "c", UID: cluster.UID}}
	f.createMachine()
	f.refresh(f.machine)
	f.createObjects(
		metav1.OwnerReference{APIVersion: older, Kind: "Machine", Name: f.machine.Name, UID: f.machine.UID, Controller: ptr.To(true)},
	)
	current := ConsistOf(HaveField("APIVersion", clusterv1.GroupVersion.String()))
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.OwnerReferences).To(current)
		for _, obj := range []*unstructured.Unstructured{f.config, f.infra} {
			f.refresh(obj)
			g.Expect(obj.GetOwnerReferences()).To(current)
		}
	})
}

// TestPausingByAnnotation: of one Machine alone, also while it is deleted.
func TestPausingByAnnotation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.annotate(f.machine, clusterv1.PausedAnnotation, ptr.To(""))
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Paused")).To(Equal("True/Paused"))
		g.Expect(message(m, "Paused")).To(ContainSubstring(clusterv1.PausedAnnotation))
		g.Expect(m.Status.Phase).To(Equal("Running"))
	})
	f.refresh(f.machine)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.awaitsNothing()
	f.refresh(node)
	f.Expect(node.Spec.Unschedulable).To(BeFalse(), "nothing is deleted meanwhile")
	f.annotate(f.machine, clusterv1.PausedAnnotation, nil)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}

// TestHeldByOthers: what is left when only finalizers of others remain.
func TestHeldByOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.setFinalizers(f.machine, clusterv1.MachineFinalizer, "example.com/audit")
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(node)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Deleted"))
		g.Expect(condition(m, "Deleting")).To(Equal("True/DeletionCompleted"))
		g.Expect(message(m, "Deleting")).To(ContainSubstring("example.com/audit"))
		g.Expect(m.Finalizers).To(ConsistOf("example.com/audit"))
	})
	f.awaitsNothing()
	f.setFinalizers(f.machine)
	f.eventuallyGone(f.machine)
}

// TestPhasesWithADataSecretOfTheUser goes through the whole life of a Machine without a bootstrap config. Upstream's core
// never reports the phase Provisioning for it, since nothing marks its data as there.
func TestPhasesWithADataSecretOfTheUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("mine")}
	phase := func(want string) {
		t.Helper()
		f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.Phase).To(Equal(want)) })
	}
	f.createMachine()
	phase("Provisioning")
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Initialization.BootstrapDataSecretCreated).To(HaveValue(BeTrue()))
	})
	f.infra = coretest.Object(coretest.Kind(coretest.Machine, f.contract), f.namespace, f.machine.Name)
	core.Create(t, f.infra)
	f.provision()
	phase("Provisioned")
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	phase("Running")
	f.annotate(f.machine, clusterv1.UpdateInProgressAnnotation, ptr.To(""))
	phase("Updating")
	f.refresh(f.infra)
	f.setFinalizers(f.infra, providerFinalizer)
	f.refresh(f.machine)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	phase("Deleting")
	f.setFinalizers(f.infra)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}
