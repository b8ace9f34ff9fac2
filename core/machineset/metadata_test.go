package machineset

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	machinecontroller "millwright.dev/core/machine"
)

// TestRecordsAreNoTemplates: what the core records in a Machine of its Node is neither given nor taken by a template, in place
// or at creation; with a template of other values the two do not overwrite each other.
func TestRecordsAreNoTemplates(t *testing.T) {
	g := NewWithT(t)
	set := validSet(func(s *clusterv1.MachineSet) {
		s.Spec.Template.Annotations = map[string]string{
			"note":                                   "one",
			machinecontroller.LabelsOnNodeAnnotation: "forged",
			machinecontroller.TaintsInitializedAnnotation: "forged",
			AdoptedAnnotation: "2026-01-01T00:00:00Z",
		}
	})
	m := desiredMachine(set, "m")
	g.Expect(m.Annotations).To(HaveKey("note"))
	g.Expect(m.Annotations).
		NotTo(Or(HaveKey(machinecontroller.LabelsOnNodeAnnotation), HaveKey(machinecontroller.TaintsInitializedAnnotation), HaveKey(AdoptedAnnotation)))

	record := map[string]string{
		machinecontroller.LabelsOnNodeAnnotation:      "a",
		machinecontroller.TaintsOnNodeAnnotation:      "b:NoSchedule",
		machinecontroller.TaintsInitializedAnnotation: "uid",
	}
	maps.Copy(m.Annotations, record)
	g.Expect(differs(m, set)).To(BeFalse())
	set.Spec.Template.Annotations = nil
	propagate(m, set)
	for key, value := range record {
		g.Expect(m.Annotations).To(HaveKeyWithValue(key, value))
	}
	g.Expect(m.Annotations).NotTo(HaveKey("note"))
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
