package chaos

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// well is a set of one Machine that is as it should be.
func well() (*run, *state) {
	id := "aws:///z/i-1"
	s := &state{instances: []machine{{id: "i-1", providerID: id, running: true}}, launched: map[string]int{"u": 1}}
	set := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"}}
	set.Spec.Replicas = ptr.To[int32](1)
	set.Spec.Template.Spec.InfrastructureRef.Name = "first"
	set.Status.Replicas, set.Status.ReadyReplicas, set.Status.AvailableReplicas = ptr.To[int32](1), ptr.To[int32](1), ptr.To[int32](1)
	s.sets.Items = []clusterv1.MachineSet{set}
	m := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", OwnerReferences: []metav1.OwnerReference{{UID: "s", Controller: ptr.To(true)}}},
	}
	m.Spec.ProviderID, m.Status.Phase, m.Status.NodeRef.Name = id, "Running", "n"
	for _, kind := range []string{clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineNodeReadyCondition} {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	s.machines.Items = []clusterv1.Machine{m}
	infra := &infrav1.AWSMachine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "first"}},
	}
	infra.Spec.ProviderID = id
	s.infra = []driver.Object{infra}
	s.configs.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "m"}}}
	s.secrets.Items = []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "m"}}}
	s.nodes.Items = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: id}}}
	return &run{cloud: clouds["aws"]}, s
}

func TestProblems(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*run, *state)
		want  string
	}{
		{"all is well", func(*run, *state) {}, ""},
		{"not running", func(_ *run, s *state) { s.machines.Items[0].Status.Phase = "Provisioned" }, "Machine m is Provisioned"},
		{"being deleted", func(_ *run, s *state) { s.machines.Items[0].DeletionTimestamp = ptr.To(metav1.Now()) }, "being deleted"},
		{"missing", func(r *run, _ *state) { r.single = map[string]bool{"x": true} }, "Machine x is missing"},
		{"no instance", func(_ *run, s *state) { s.instances[0].running = false }, "no running instance"},
		{"an instance too many", func(_ *run, s *state) { s.instances = append(s.instances, machine{id: "i-2"}) }, "instance i-2"},
		{"two instances of one Machine", func(_ *run, s *state) { s.launched["u"] = 2 }, "has had 2 instances"},
		{"two Nodes", func(_ *run, s *state) { s.nodes.Items = append(s.nodes.Items, s.nodes.Items[0]) }, "has 2 Nodes"},
		{"a Node too many", func(_ *run, s *state) { s.nodes.Items = append(s.nodes.Items, corev1.Node{}) }, "has no Machine"},
		{"cordoned", func(_ *run, s *state) { s.nodes.Items[0].Spec.Unschedulable = true }, "cordoned"},
		{"uninitialized", func(_ *run, s *state) {
			s.nodes.Items[0].Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint}
		}, "uninitialized"},
		{"a label is not there", func(_ *run, s *state) { s.machines.Items[0].Labels = map[string]string{markLabel: "x"} }, "has label"},
		{"not ready", func(_ *run, s *state) { s.machines.Items[0].Status.Conditions[0].Status = metav1.ConditionFalse }, "Machine m: "},
		{"no config", func(_ *run, s *state) { s.configs.Items = nil }, "lacks its bootstrap config"},
		{"a config too many", func(_ *run, s *state) { s.configs.Items = append(s.configs.Items, metav1.PartialObjectMetadata{}) }, "bootstrap config "},
		{"a Secret too many", func(_ *run, s *state) { s.secrets.Items = append(s.secrets.Items, corev1.Secret{}) }, "Secret "},
		{"an AWSMachine too many", func(_ *run, s *state) { s.infra = append(s.infra, &infrav1.AWSMachine{}) }, "AWSMachine "},
		{"wrong number", func(_ *run, s *state) { s.sets.Items[0].Spec.Replicas = ptr.To[int32](2) }, "has 1 Machines instead of 2"},
		{"wrong status", func(_ *run, s *state) { s.sets.Items[0].Status.ReadyReplicas = nil }, "has 1 replicas in its spec and counts -1"},
		{"wrong template", func(_ *run, s *state) { s.sets.Items[0].Spec.Template.Spec.InfrastructureRef.Name = "second" }, "instead of \"second\""},
		{"a Pod left over", func(_ *run, s *state) { s.pods.Items = []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "gone"}}} }, "was not drained"},
		{"a volume left over", func(_ *run, s *state) { s.parts = []part{{"volume", "vol", "gone"}} }, "volume vol"},
		{"an interface left over", func(_ *run, s *state) { s.parts = []part{{kind: "network interface", id: "eni"}} }, "network interface eni"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			r, s := well()
			c.spoil(r, s)
			if c.want == "" {
				g.Expect(r.problems(s)).To(BeEmpty())
				return
			}
			g.Expect(r.problems(s)).To(ContainElement(ContainSubstring(c.want)))
		})
	}
}
