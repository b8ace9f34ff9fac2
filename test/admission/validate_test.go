package admission_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestValidation creates, invalidates and deletes an object of each kind. All rules are tested with the functions in
// core/admission/validate; here it is shown that each kind gets there, and what a client reads.
func TestValidation(t *testing.T) {
	serve(t)
	ns := namespace(t)
	rule := &clusterv1.MachineDrainRule{
		ObjectMeta: named(ns, "r"),
		Spec:       clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: "Skip"}},
	}
	set, deployment, check := plainSet(), plainDeployment(), plainCheck()
	for _, test := range []struct {
		obj   client.Object
		spoil func(client.Object)
		want  string
		// alone is whether the spoilt object is fine as a new one.
		alone bool
	}{
		{plainMachine(), func(o client.Object) { o.(*clusterv1.Machine).Spec.Version = "v1" }, "spec.version", false},
		{set, func(o client.Object) { o.(*clusterv1.MachineSet).Spec.MachineNaming.Template = "x" }, "spec.machineNaming.template: Invalid value: \"x\": lacks {{ .random }}", false},
		{deployment, func(o client.Object) {
			o.(*clusterv1.MachineDeployment).Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("few"))
		}, "spec.rollout.strategy.rollingUpdate.maxSurge", false},
		{check, func(o client.Object) {
			o.(*clusterv1.MachineHealthCheck).Spec.Checks.NodeStartupTimeoutSeconds = ptr.To[int32](1)
		}, "spec.checks.nodeStartupTimeoutSeconds", false},
		{rule, func(o client.Object) { o.(*clusterv1.MachineDrainRule).Spec.Drain.Order = ptr.To[int32](1) }, "spec.drain.order", false},
		{plainCluster(), func(o client.Object) {
			o.(*clusterv1.Cluster).Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
		}, "spec.controlPlaneRef: Forbidden", true},
	} {
		g, ctx := NewWithT(t), t.Context()
		fresh := test.obj.DeepCopyObject().(client.Object)
		for _, o := range []client.Object{test.obj, fresh} {
			o.SetNamespace(ns)
		}
		test.spoil(fresh)
		if !test.alone {
			err := live.Create(ctx, fresh)
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%T: %v", fresh, err)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		}
		g.Expect(live.Create(ctx, test.obj)).To(Succeed())
		spoilt := test.obj.DeepCopyObject().(client.Object)
		test.spoil(spoilt)
		err := live.Update(ctx, spoilt)
		g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%T: %v", spoilt, err)
		g.Expect(err).To(MatchError(ContainSubstring(test.want)))
		g.Expect(live.Delete(ctx, test.obj)).To(Succeed(), "webhooks are not called for deletions")
	}
}

// TestBeforeAdmission: an invalid object that was stored without webhooks can lose its finalizers and get labels, but
// no further invalid values.
func TestBeforeAdmission(t *testing.T) {
	g, ctx, ns := NewWithT(t), t.Context(), namespace(t)
	g.Expect(env.RemoveWebhooks(ctx)).To(Succeed())
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "m", Finalizers: []string{"a.b/c"}}, Spec: machineSpec()}
	machine.Spec.Version = "v1"
	g.Eventually(func() error { return live.Create(ctx, machine.DeepCopy()) }).
		WithTimeout(timeout).
		Should(Or(Succeed(), MatchError(apierrors.IsAlreadyExists, "exists")))
	g.Expect(env.InstallWebhooks(ctx, port)).To(Succeed())
	serve(t)

	g.Expect(live.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
	patch := client.MergeFrom(machine.DeepCopy())
	machine.Labels = map[string]string{"a": "b"}
	g.Expect(live.Patch(ctx, machine, patch)).To(Succeed())
	g.Expect(machine.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
	patch = client.MergeFrom(machine.DeepCopy())
	machine.Spec.Version = "v2"
	g.Expect(live.Patch(ctx, machine, patch)).To(MatchError(ContainSubstring("spec.version")))
	g.Expect(live.Delete(ctx, machine)).To(Succeed())
	g.Expect(live.Patch(ctx, machine, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).
		To(Succeed())
}
