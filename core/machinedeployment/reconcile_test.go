package machinedeployment

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func toTemplateB(deployment *clusterv1.MachineDeployment) {
	deployment.Spec.Template.Spec.InfrastructureRef.Name = "b"
}

func TestLifeOfADeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(3)
	w.start(t)
	w.Eventually(w.running(3))
	first := w.listSets()[0]
	w.G.Expect(first.Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "1"))
	w.G.Expect(metav1.IsControlledBy(&first, w.current())).To(BeTrue())

	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To[int32](5) })
	w.Eventually(w.running(5))
	w.G.Expect(w.listSets()[0].UID).To(Equal(first.UID), "scaling makes no new set")

	stop := w.watchNumbers(5+1, 5)
	w.update(toTemplateB)
	w.Eventually(func(g Gomega) {
		w.running(5)(g)
		g.Expect(w.listSets()[0].UID).NotTo(Equal(first.UID))
	})
	stop()
	w.G.Expect(w.listSets()[0].Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "2"))
	w.G.Expect(w.current().Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "2"))

	w.G.Expect(direct.Delete(w.Ctx, w.current())).To(Succeed())
	w.Eventually(func(g Gomega) {
		list := &clusterv1.MachineDeploymentList{}
		g.Expect(direct.List(w.Ctx, list)).To(Succeed())
		for _, deployment := range list.Items {
			g.Expect(deployment.Namespace).NotTo(Equal(w.Namespace))
		}
	})
	w.G.Expect(w.allSets()).To(BeEmpty())
	w.G.Expect(w.Machines()).To(BeEmpty())
}

func TestUnavailableInsteadOfSurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(4, func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
			Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
				MaxSurge: ptr.To(intstr.FromInt32(0)), MaxUnavailable: ptr.To(intstr.FromString("25%")),
			},
		}
	})
	w.start(t)
	w.Eventually(w.running(4))
	stop := w.watchNumbers(4, 3)
	w.update(toTemplateB)
	w.Eventually(func(g Gomega) {
		w.running(4)(g)
		g.Expect(w.listSets()[0].Spec.Template.Spec.InfrastructureRef.Name).To(Equal("b"))
	})
	stop()
}

func formatNumbers(machines, available int) string {
	return fmt.Sprintf("%d Machines exist, %d are available", machines, available)
}
