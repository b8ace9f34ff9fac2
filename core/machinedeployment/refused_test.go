package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/refuse"
)

func isDeployment(object client.Object) bool {
	_, ok := object.(*clusterv1.MachineDeployment)
	return ok
}

// TestRefusedRevisionIsSeen: the annotation with the revision is written together with the status. A policy that refuses it
// keeps neither the numbers from being reported, nor itself from being seen.
func TestRefusedRevisionIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	policy.Begin(isDeployment, clusterv1.RevisionAnnotation)
	w.deployment(2)
	w.start(t, policy.Wrap)
	w.Eventually(func(g Gomega) {
		g.Expect(w.current().Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(2)))
		w.reports(clusterv1.MachineDeploymentRollingOutCondition, "InternalError", refuse.Because)(g)
	})
	w.G.Expect(w.current().Annotations).NotTo(HaveKey(clusterv1.RevisionAnnotation))
	policy.Lift()
	w.Eventually(func(g Gomega) {
		w.settled(2, "a", "1")(g)
		w.reports(clusterv1.MachineDeploymentRollingOutCondition, "NotRollingOut", "")(g)
	})
}

// TestRefusedMetadataOfADeploymentIsSeen: without the finalizer nothing is created.
func TestRefusedMetadataOfADeploymentIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	policy.Begin(isDeployment, clusterv1.MachineDeploymentFinalizer)
	w.deployment(1)
	w.start(t, policy.Wrap)
	for _, kind := range []string{clusterv1.MachineDeploymentAvailableCondition, clusterv1.MachineDeploymentRollingOutCondition} {
		w.Eventually(w.reports(kind, "InternalError", refuse.Because))
	}
	w.G.Expect(w.allSets()).To(BeEmpty())
	policy.Lift()
	w.Eventually(w.settled(1, "a", "1"))
}

// TestRefusedUpdateOfASetIsSeen: nothing rolls out for a label, so that no other condition would report it.
func TestRefusedUpdateOfASetIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.deployment(1)
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(1, "a", "1"))
	policy.Begin(isSet, "example.com/color")
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels["example.com/color"] = "blue" })
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, "InternalError", refuse.Because))
	policy.Lift()
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, "NotRollingOut", ""))
	w.G.Expect(w.listSets()[0].Spec.Template.Labels).To(HaveKeyWithValue("example.com/color", "blue"))
}

// TestRefusedUpdateOfAMachineIsPassedOn: the deployment reports what the set reports.
func TestRefusedUpdateOfAMachineIsPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.deployment(1)
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(1, "a", "1"))
	policy.Begin(func(o client.Object) bool { _, ok := o.(*clusterv1.Machine); return ok }, "example.com/color")
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels["example.com/color"] = "blue" })
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingUpCondition, "ScalingUpBlocked", refuse.Because))
	policy.Lift()
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingUpCondition, "NotScalingUp", ""))
}

// TestRefusedEndOfADeploymentIsSeen: everything else is deleted, and the object stays.
func TestRefusedEndOfADeploymentIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	policy := &refuse.Patches{}
	w.deployment(1)
	w.start(t, policy.Wrap)
	w.Eventually(w.settled(1, "a", "1"))
	policy.Begin(isDeployment, "finalizers")
	w.G.Expect(direct.Delete(w.Ctx, w.current())).To(Succeed())
	w.Eventually(w.reports(clusterv1.MachineDeploymentDeletingCondition, clusterv1.MachineDeploymentDeletingReason, refuse.Because))
	policy.Lift()
	w.Eventually(func(g Gomega) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineDeploymentList"))
		g.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		g.Expect(list.Items).To(BeEmpty())
	})
}
