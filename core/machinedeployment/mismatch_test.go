package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// standalone is a set without a controller, with Machines of the colour green.
func (w *world) standalone() *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "green", Labels: map[string]string{
		"pool": "a", clusterv1.ClusterNameLabel: workers.ClusterName, clusterv1.MachineDeploymentNameLabel: "d",
	}}}
	set.Spec = clusterv1.MachineSetSpec{
		ClusterName: workers.ClusterName, Replicas: ptr.To[int32](1),
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a", "color": "green"}},
		Template: clusterv1.MachineTemplateSpec{
			ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "a", "color": "green"}},
			Spec: clusterv1.MachineSpec{
				ClusterName: workers.ClusterName, Version: "v1.36.3",
				InfrastructureRef: coretest.Ref(workers.InfraTemplateKind, "a"),
				Bootstrap:         clusterv1.Bootstrap{ConfigRef: coretest.Ref(workers.ConfigTemplateKind, "a")},
			},
		},
	}
	w.Create(set)
	return set
}

// TestSetWithANarrowerSelectorIsNotAdopted has one whose template the deployment would take the label from that it selects. It
// is named until a user has corrected the deployment, and adopted then.
func TestSetWithANarrowerSelectorIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := w.standalone()
	w.start(t)
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(1)) })
	machine := w.Machines()[0]
	w.deployment(1)
	w.Eventually(
		w.reports(rollingOut, SelectorMismatchReason, "MachineSet green is not adopted: its selector \"color=green,pool=a\" does not match"),
	)
	found := &clusterv1.MachineSet{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(set), found)).To(Succeed())
	w.G.Expect(metav1.GetControllerOf(found)).To(BeNil())
	w.G.Expect(found.Spec.Template.Labels).To(Equal(set.Spec.Template.Labels))
	w.G.Expect(w.uids()).To(HaveKey(string(machine.UID)))

	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels["color"] = "green" })
	w.Eventually(func(g Gomega) {
		g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(set), found)).To(Succeed())
		g.Expect(metav1.IsControlledBy(found, w.current())).To(BeTrue())
	})
	w.Eventually(w.reports(rollingOut, clusterv1.MachineDeploymentNotRollingOutReason, ""))
}

// TestLabelsThatASetDoesNotSelectAreNotWritten has a set that the deployment controls already.
func TestLabelsThatASetDoesNotSelectAreNotWritten(t *testing.T) {
	g := NewWithT(t)
	s := rollout(nil, servingAll(3), wants(3))
	s.current.Spec.Selector.MatchLabels = map[string]string{"color": "green"}
	s.current.Spec.Template.Labels = map[string]string{"color": "green"}
	before := s.current.DeepCopy()
	synchronizeSet(s.current, s.deployment, 2)
	g.Expect(s.current.Spec.Template.Labels).To(Equal(before.Spec.Template.Labels))
	s.Original.Status.Conditions = nil
	reported := rollingOutCondition(s, nil)
	g.Expect(reported.Reason).To(Equal(SelectorMismatchReason))
	g.Expect(reported.Message).To(ContainSubstring("MachineSet fresh keeps the labels of its template"))
}
