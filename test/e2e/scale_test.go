package e2e

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/sandbox"
)

// TestScale scales a MachineDeployment from zero to one machine, to six and immediately to two, to three and to one,
// then to four of another type in one change, and deletes it in the foreground.
func TestScale(t *testing.T) {
	w := manyWorld(t, &rolling, "scale")
	w.start(0)
	w.expectDeployment(0)
	w.Expect(w.live()).To(BeEmpty())

	w.scaleTo(1)
	w.expectDeployment(1)
	w.scaleTo(6)
	six := w.scenario.Watch.UIDs()
	w.scenario.Watch.ResetExtremes()
	w.scaleTo(2)
	w.Expect(w.scenario.Watch.Extremes().Most).To(Equal(6), "none was created while scaling down")
	for uid := range w.scenario.Watch.UIDs() {
		w.Expect(six).To(HaveKey(uid), "those that stay were there")
	}
	w.expectInstances(2)

	w.scaleTo(3)
	w.scaleTo(1)
	w.expectDeployment(1)
	for _, machine := range w.machines() {
		w.Expect(meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineReadyCondition)).To(BeTrue())
	}

	old := w.scenario.Watch.UIDs()
	w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Replicas = ptr.To[int32](4) })
	w.Expect(w.scenario.Roll(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitRolled(w.ctx, old, 4)).To(Succeed())
	w.expectDeployment(4)
	w.Expect(w.ofTemplate(nextTemplate)).To(HaveLen(4))
	w.expectInstances(4)
	w.deleteInForeground()
}

// scaleTo changes the number of replicas by the scale subresource, as kubectl scale does.
func (w *world) scaleTo(count int32) {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count))
	w.Expect(w.control.SubResource("scale").Patch(w.ctx, w.deployment(), patch)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, int(count))).To(Succeed())
}

// expectDeployment waits until the status says that there are so many machines and nothing is left to do.
func (w *world) expectDeployment(count int) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		md := w.deployment()
		g.Expect(md.Status.ObservedGeneration).To(Equal(md.Generation))
		for _, number := range []*int32{md.Status.Replicas, md.Status.ReadyReplicas, md.Status.AvailableReplicas, md.Status.UpToDateReplicas} {
			g.Expect(number).To(HaveValue(BeEquivalentTo(count)))
		}
		g.Expect(meta.IsStatusConditionTrue(md.Status.Conditions, clusterv1.AvailableCondition)).To(BeTrue())
		for _, over := range []string{clusterv1.RollingOutCondition, clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition} {
			g.Expect(meta.IsStatusConditionFalse(md.Status.Conditions, over)).To(BeTrue(), over)
		}
	}).Should(Succeed())
}

// expectInstances makes sure that there is one instance for each Machine, and no other.
func (w *world) expectInstances(count int) {
	w.t.Helper()
	w.Eventually(w.live).Should(HaveLen(count))
	w.Expect(w.machines()).To(HaveLen(count))
}

// deleteInForeground deletes the MachineDeployment so that it is deleted last.
func (w *world) deleteInForeground() {
	w.t.Helper()
	md := w.deployment()
	w.Expect(w.control.Delete(w.ctx, md, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	w.Eventually(func() bool {
		err := w.control.Get(w.ctx, client.ObjectKeyFromObject(md), md)
		if !apierrors.IsNotFound(err) {
			return false
		}
		w.Expect(w.machines()).To(BeEmpty(), "the MachineDeployment is deleted last")
		return true
	}).Should(BeTrue())
	w.Expect(w.live()).To(BeEmpty())
}

// TestSingleMachine creates a Machine without a set, deletes it, and deletes it again.
func TestSingleMachine(t *testing.T) {
	w := manyWorld(t, &rolling, "single")
	w.start(0)
	before := len(w.nodes())
	machine := w.makeMachine("single")
	w.Expect(w.scenario.AwaitRunning(w.ctx, 1)).To(Succeed())
	w.Expect(w.nodes()).To(HaveLen(before + 1))

	w.Expect(w.control.Delete(w.ctx, machine)).To(Succeed())
	w.Eventually(w.machines).Should(BeEmpty())
	w.Expect(w.nodes()).To(HaveLen(before))
	w.Expect(w.live()).To(BeEmpty())
	w.Expect(apierrors.IsNotFound(w.control.Delete(w.ctx, machine))).To(BeTrue())
	w.Expect(w.nodes()).To(HaveLen(before))
}

// makeMachine creates a Machine with its bootstrap config and infrastructure, from the sample templates.
func (w *world) makeMachine(name string) *clusterv1.Machine {
	w.t.Helper()
	md := w.deployment()
	templateKey := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: w.namespace, Name: name} }
	configs, infras := &bootstrapv1.CloudConfigTemplate{}, &infrav1.AWSMachineTemplate{}
	w.Expect(w.control.Get(w.ctx, templateKey(md.Spec.Template.Spec.Bootstrap.ConfigRef.Name), configs)).To(Succeed())
	w.Expect(w.control.Get(w.ctx, templateKey(md.Spec.Template.Spec.InfrastructureRef.Name), infras)).To(Succeed())
	object := metav1.ObjectMeta{
		Namespace: w.namespace,
		Name:      name,
		Labels:    map[string]string{clusterv1.ClusterNameLabel: sandbox.SampleCluster},
	}
	config := &bootstrapv1.CloudConfig{ObjectMeta: object, Spec: configs.Spec.Template.Spec}
	infra := &infrav1.AWSMachine{ObjectMeta: object, Spec: infras.Spec.Template.Spec}
	machine := &clusterv1.Machine{ObjectMeta: object, Spec: clusterv1.MachineSpec{ClusterName: sandbox.SampleCluster}}
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrapv1.GroupVersion.Group,
		Kind:     "CloudConfig",
		Name:     name,
	}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group,
		Kind:     "AWSMachine",
		Name:     name,
	}
	for _, made := range []client.Object{config, infra, machine} {
		w.Expect(w.control.Create(w.ctx, made)).To(Succeed())
	}
	return machine
}
