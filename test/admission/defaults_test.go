package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func ref(kind string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "stand-in.millwright.dev", Kind: kind, Name: "x"}
}

func machineSpec() clusterv1.MachineSpec {
	return clusterv1.MachineSpec{
		ClusterName:       "c",
		InfrastructureRef: ref("XMachine"),
		Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
	}
}

func templateSpec() clusterv1.MachineTemplateSpec {
	spec := machineSpec()
	spec.InfrastructureRef.Kind += "Template"
	return clusterv1.MachineTemplateSpec{Spec: spec}
}

func named(ns, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: ns, Name: name} }

// TestDefaults creates what leaves everything open, and reads it back.
func TestDefaults(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)

	machine := &clusterv1.Machine{ObjectMeta: named(ns, "m"), Spec: machineSpec()}
	machine.Spec.Version = "1.36.3"
	g.Expect(live.Create(ctx, machine)).To(Succeed())
	g.Expect(machine.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	g.Expect(machine.Spec.Version).To(Equal("v1.36.3"))
	g.Expect(machine.Spec.Deletion.NodeDeletionTimeoutSeconds).To(HaveValue(BeEquivalentTo(10)))
	patch := client.MergeFrom(machine.DeepCopy())
	machine.Labels = nil
	g.Expect(live.Patch(ctx, machine, patch)).To(Succeed())
	g.Expect(machine.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"), "an update gets defaults as well")

	set := &clusterv1.MachineSet{ObjectMeta: named(ns, "s"), Spec: clusterv1.MachineSetSpec{ClusterName: "c", Template: templateSpec()}}
	g.Expect(live.Create(ctx, set)).To(Succeed())
	g.Expect(set.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(set.Spec.Selector.MatchLabels).To(Equal(map[string]string{clusterv1.MachineSetNameLabel: "s"}))

	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: named(ns, "d"),
		Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "c", Template: templateSpec()},
	}
	g.Expect(live.Create(ctx, deployment)).To(Succeed())
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(deployment.Spec.Rollout.Strategy.Type).To(Equal(clusterv1.RollingUpdateMachineDeploymentStrategyType))
	g.Expect(deployment.Spec.Selector.MatchLabels).To(HaveKeyWithValue(clusterv1.MachineDeploymentNameLabel, "d"))

	check := &clusterv1.MachineHealthCheck{ObjectMeta: named(ns, "h"), Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	g.Expect(live.Create(ctx, check)).To(Succeed())
	g.Expect(check.Spec.Checks.NodeStartupTimeoutSeconds).To(HaveValue(BeEquivalentTo(600)))
}

// TestHandingOverToTheAutoscaler: the number of Machines stays when replicas is given up.
func TestHandingOverToTheAutoscaler(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	deployment := &clusterv1.MachineDeployment{ObjectMeta: named(ns, "d"), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: "c", Template: templateSpec(), Replicas: ptr.To[int32](5)}}
	g.Expect(live.Create(ctx, deployment)).To(Succeed())
	patch := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = nil
	deployment.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2", clusterv1.AutoscalerMaxSizeAnnotation: "9"}
	g.Expect(live.Patch(ctx, deployment, patch)).To(Succeed())
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))
	patch = client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = nil
	deployment.Annotations[clusterv1.AutoscalerMaxSizeAnnotation] = "many"
	g.Expect(live.Patch(ctx, deployment, patch)).To(MatchError(ContainSubstring("is not a number of Machines")))
}

// TestGeneratedNames: the API server makes the name after the defaults are filled in.
func TestGeneratedNames(t *testing.T) {
	serve(t)
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "s-"},
		Spec:       clusterv1.MachineSetSpec{ClusterName: "c", Template: templateSpec()},
	}
	g.Expect(live.Create(ctx, set)).To(MatchError(ContainSubstring("spec.selector: Required value")), "no selector that two sets would share")
	set.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
	set.Spec.Template.Labels = map[string]string{"a": "b"}
	g.Expect(live.Create(ctx, set)).To(Succeed())
}
