package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Neither a template nor a copy of a Machine's annotations in it marks Machines as adopted, which would have no children.
func TestDesiredMachine_TemplateWithAdopted_IsNotAdopted(t *testing.T) {
	g := NewWithT(t)
	set := validSet(func(s *clusterv1.MachineSet) {
		s.Spec.Template.Annotations = map[string]string{"note": "one", AdoptedAnnotation: "2026-01-01T00:00:00Z"}
	})
	m := desiredMachine(set, "m")
	g.Expect(m.Annotations).To(And(HaveKey("note"), Not(HaveKey(AdoptedAnnotation))))
}

// TestATemplateHasNoInstance: a provider ID in a template would be that of all its Machines, each of which would claim another owner's
// instance, and would be taken for one that has had its infrastructure machine.
func TestATemplateHasNoInstance(t *testing.T) {
	g := NewWithT(t)
	set := validSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.ProviderID = "cloud:///other" })
	m := desiredMachine(set, "m")
	g.Expect(m.Spec.ProviderID).To(BeEmpty())
	g.Expect(differs(m, set)).To(BeFalse())
}
