package main

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

func validSpec() examplev1.ExampleMachineSpec {
	return examplev1.ExampleMachineSpec{
		Account: "acme", Zones: []string{"a", "b"}, MachineType: "small", FallbackMachineTypes: []string{"large"}, Image: "node-v1", Spot: true,
		Labels: map[string]examplev1.LabelValue{"team": "blue"},
	}
}

func unowned(spec examplev1.ExampleMachineSpec) *examplev1.ExampleMachine {
	return &examplev1.ExampleMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "m-"}, Spec: spec}
}

// TestSpecsThatAreRefused by the API server, so that the cloud is never called.
func TestSpecsThatAreRefused(t *testing.T) {
	NewWithT(t).Expect(c.Create(t.Context(), unowned(validSpec()), client.DryRunAll)).To(Succeed())
	for message, change := range map[string]func(*examplev1.ExampleMachineSpec){
		"spec.account: Required":                  func(s *examplev1.ExampleMachineSpec) { s.Account = "" },
		"spec.account in body should match":       func(s *examplev1.ExampleMachineSpec) { s.Account = "../other" },
		"spec.zones: Required":                    func(s *examplev1.ExampleMachineSpec) { s.Zones = nil },
		"spec.zones[0] in body should match":      func(s *examplev1.ExampleMachineSpec) { s.Zones = []string{"a/b"} },
		"spec.zones[1]: Duplicate":                func(s *examplev1.ExampleMachineSpec) { s.Zones = []string{"a", "a"} },
		"spec.machineType: Required":              func(s *examplev1.ExampleMachineSpec) { s.MachineType = "" },
		"has the value of machineType":            func(s *examplev1.ExampleMachineSpec) { s.FallbackMachineTypes = []string{"small"} },
		"spec.image: Required":                    func(s *examplev1.ExampleMachineSpec) { s.Image = "" },
		"keys and values have lower-case letters": func(s *examplev1.ExampleMachineSpec) { s.Labels["Team"] = "blue" },
		"set by the provider":                     func(s *examplev1.ExampleMachineSpec) { s.Labels["millwright-owner"] = "me" },
	} {
		spec := validSpec()
		change(&spec)
		NewWithT(t).Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(MatchError(ContainSubstring(message)))
	}
}

// TestSpecsAreImmutable, but for the provider ID, which is written once.
func TestSpecsAreImmutable(t *testing.T) {
	g := NewWithT(t)
	m := unowned(validSpec())
	g.Expect(c.Create(t.Context(), m)).To(Succeed())
	seconds := int32(60)
	for field, change := range map[string]func(*examplev1.ExampleMachineSpec){
		"account":              func(s *examplev1.ExampleMachineSpec) { s.Account = "other" },
		"zones":                func(s *examplev1.ExampleMachineSpec) { s.Zones = []string{"a"} },
		"machineType":          func(s *examplev1.ExampleMachineSpec) { s.MachineType = "other" },
		"fallbackMachineTypes": func(s *examplev1.ExampleMachineSpec) { s.FallbackMachineTypes = nil },
		"image":                func(s *examplev1.ExampleMachineSpec) { s.Image = "other" },
		"labels":               func(s *examplev1.ExampleMachineSpec) { s.Labels = nil },
		"launchTimeoutSeconds": func(s *examplev1.ExampleMachineSpec) { s.LaunchTimeoutSeconds = &seconds },
		"spot":                 func(s *examplev1.ExampleMachineSpec) { s.Spot = false },
		"userDataCompression":  func(s *examplev1.ExampleMachineSpec) { s.UserDataCompression = "Gzip" },
	} {
		changed := m.DeepCopy()
		change(&changed.Spec)
		g.Expect(c.Patch(t.Context(), changed, client.MergeFrom(m))).To(MatchError(ContainSubstring(field+" is immutable")), field)
	}
	// Patches, since the provider writes the status of the object meanwhile.
	base := m.DeepCopy()
	m.Spec.ProviderID = "example:///acme/a/m1"
	g.Expect(c.Patch(t.Context(), m, client.MergeFrom(base))).To(Succeed())
	base = m.DeepCopy()
	m.Spec.ProviderID = "example:///acme/a/m2"
	g.Expect(c.Patch(t.Context(), m, client.MergeFrom(base))).To(MatchError(ContainSubstring("providerID is immutable")))
	g.Expect(c.Delete(t.Context(), m)).To(Succeed())
}

// TestTemplates have no provider ID, and may be applied again. The policy makes them immutable: see TestConformance.
func TestTemplates(t *testing.T) {
	g := NewWithT(t)
	template := &examplev1.ExampleMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"}}
	template.Spec.Template.Spec = validSpec()
	template.Spec.Template.Spec.ProviderID = "example:///acme/a/m1"
	g.Expect(c.Create(t.Context(), template)).To(MatchError(ContainSubstring("cannot be set in a template")))
	template.Spec.Template.Spec.ProviderID = ""
	g.Expect(c.Create(t.Context(), template)).To(Succeed())
	g.Expect(c.Update(t.Context(), template)).To(Succeed())
	g.Expect(c.Delete(t.Context(), template)).To(Succeed())
}
