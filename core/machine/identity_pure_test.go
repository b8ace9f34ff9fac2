package machine

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
	"millwright.dev/core/limits"
)

// TestPureRefusals: of a claim that is not believed it is reported whose Node it is not, and by which evidence.
func TestPureRefusals(t *testing.T) {
	none := func(string) string { return "" }
	claim := func(names ...string) (claims []nodeClaim) {
		for _, name := range names {
			claims = append(claims, nodeClaim{name: name})
		}
		return claims
	}
	for name, test := range map[string]struct {
		evidence nodeEvidence
		chosen   string
		claims   []nodeClaim
		want     string
	}{
		"no claim":              {nodeEvidence{elsewhere: none}, "", nil, ""},
		"its own alone":         {nodeEvidence{elsewhere: none}, "n", claim("n"), ""},
		"one beside its own":    {nodeEvidence{expected: "x", linked: "y", elsewhere: none}, "n", claim("z", "n"), "Node z claims the provider ID id and is ignored: this Machine is linked with Node n. "},
		"another name expected": {nodeEvidence{expected: "x", linked: "y", elsewhere: none}, "", claim("z"), "Node z claims the provider ID id and is ignored: the Node of this Machine is named x. "},
		"another linked":        {nodeEvidence{linked: "y", elsewhere: none}, "", claim("z"), "Node z claims the provider ID id and is ignored: this Machine is linked with Node y. "},
		"another Machine's":     {nodeEvidence{elsewhere: func(node string) string { return "ns/" + node }}, "", claim("z", "a"), "Nodes a, z claim the provider ID id and is ignored: that is the Node of Machine ns/a. "},
		"never provisioned":     {nodeEvidence{elsewhere: none}, "", claim("z"), "Node z claims the provider ID id and is ignored: its infrastructure was never provisioned. "},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(test.evidence.refusal("id", test.chosen, test.claims)).To(HavePrefix(test.want))
			if test.want == "" {
				NewWithT(t).Expect(test.evidence.refusal("id", test.chosen, test.claims)).To(BeEmpty())
			}
		})
	}
	g := NewWithT(t)
	g.Expect(few([]string{"a", "b", "c"})).To(Equal("a, b, c"))
	g.Expect(few([]string{"a", "b", "c", "d"})).To(Equal("a, b, c and 1 more"))
}

// TestPureChoice: what is chosen without a name that is established.
func TestPureChoice(t *testing.T) {
	g := NewWithT(t)
	free := func(string) string { return "" }
	older, younger := metav1.Unix(1, 0), metav1.Unix(2, 0)
	choose := func(e nodeEvidence, claims ...nodeClaim) (string, bool) { return e.chooseNode(claims) }

	name, several := choose(nodeEvidence{elsewhere: free}, nodeClaim{name: "a"})
	g.Expect([]any{name, several}).To(Equal([]any{"a", false}), "the only one")
	name, several = choose(nodeEvidence{elsewhere: free}, nodeClaim{name: "a"}, nodeClaim{name: "b"})
	g.Expect([]any{name, several}).To(Equal([]any{"", true}), "nothing distinguishes them")
	name, several = choose(nodeEvidence{elsewhere: func(string) string { return "x" }}, nodeClaim{name: "a"})
	g.Expect([]any{name, several}).To(Equal([]any{"", false}), "another's")
	name, _ = choose(nodeEvidence{machine: "m", elsewhere: free, created: younger}, nodeClaim{name: "m", created: older})
	g.Expect(name).To(Equal("m"), "only for an unconfirmed ID does the age count")
	name, _ = choose(nodeEvidence{machine: "m", unconfirmed: true, elsewhere: free, created: younger}, nodeClaim{name: "m", created: older})
	g.Expect(name).To(BeEmpty(), "it was there before the Machine")
	name, _ = choose(nodeEvidence{machine: "m", unconfirmed: true, elsewhere: free, created: younger}, nodeClaim{name: "m", created: younger})
	g.Expect(name).To(Equal("m"))
	name, _ = choose(nodeEvidence{linked: "l", elsewhere: free}, nodeClaim{name: "l"})
	g.Expect(name).To(Equal("l"))
	name, _ = choose(nodeEvidence{linked: "l", elsewhere: free}, nodeClaim{name: "a"})
	g.Expect(name).To(BeEmpty(), "the linked one is not there, and another is not believed")
}

// TestPureEquals: those with as good a claim are named, and no others.
func TestPureEquals(t *testing.T) {
	g := NewWithT(t)
	m := func(name string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
	}
	a, b, c := m("a"), m("b"), m("c")
	holder, equals := holderOf([]claimant{{c, recorded, false}, {b, reported, false}, {a, reported, false}})
	g.Expect(holder).To(BeIdenticalTo(a))
	g.Expect(equals).To(Equal([]*clusterv1.Machine{b}))
	g.Expect(contested("id", equals)).To(HavePrefix("The infrastructure of Machine n/b reports the provider ID id too"))
	g.Expect(contested("id", nil)).To(BeEmpty())

	err := &OtherMachineError{ProviderID: "id", Machine: types.NamespacedName{Namespace: "n", Name: "a"}, Equal: true}
	g.Expect(err.Error()).To(ContainSubstring("reports the provider ID id too, and was first"))
	err.Equal = false
	g.Expect(err.Error()).To(HavePrefix("The provider ID id is that of Machine n/a, whose infrastructure reports it"))
}

// TestPureFacts: what is copied from a provisioned infrastructure object, and which field an error names.
func TestPureFacts(t *testing.T) {
	object := func(changes map[string]any) *unstructured.Unstructured {
		made := map[string]any{
			"kind": "Infra", "metadata": map[string]any{"name": "i"},
			"spec":   map[string]any{"providerID": "p://1"},
			"status": map[string]any{"failureDomain": "zone", "interruptible": true, "addresses": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1"}}},
		}
		for path, value := range changes {
			if err := unstructured.SetNestedField(made, value, strings.Split(path, ".")...); err != nil {
				panic(err)
			}
		}
		return &unstructured.Unstructured{Object: made}
	}
	for name, test := range map[string]struct {
		changes map[string]any
		refused string
	}{
		"whole":                         {nil, ""},
		"no provider ID":                {map[string]any{"spec.providerID": ""}, "spec.providerID"},
		"a provider ID that is no text": {map[string]any{"spec.providerID": int64(1)}, "spec.providerID"},
		"the longest provider ID":       {map[string]any{"spec.providerID": strings.Repeat("é", limits.MaxProviderID)}, ""},
		"a provider ID too long":        {map[string]any{"spec.providerID": strings.Repeat("é", limits.MaxProviderID+1)}, "spec.providerID"},
		"addresses that are none":       {map[string]any{"status.addresses": "x"}, "status.addresses"},
		"a domain that is no text":      {map[string]any{"status.failureDomain": true}, "status.failureDomain"},
		"interruptible that is no flag": {map[string]any{"status.interruptible": "x"}, "status.interruptible"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := judged()
			s.infrastructure.object.Unstructured = object(test.changes)
			err := s.copyInfrastructure(inframachine.At(version.V1Beta2))
			if test.refused != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.refused)))
				g.Expect(s.infrastructureRead).To(BeFalse())
				g.Expect(s.Object.Spec.ProviderID).To(Equal("id"), "nothing is copied")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.infrastructureRead && s.interruptible).To(BeTrue())
			g.Expect(s.Object.Spec.ProviderID).NotTo(Equal("id"))
			g.Expect(s.Object.Status.FailureDomain).To(Equal("zone"))
			g.Expect(s.Object.Status.Addresses).To(HaveLen(1))
			g.Expect(s.Object.Spec.FailureDomain).To(BeEmpty(), "only what the spec of the object says goes to the spec")
		})
	}
	g := NewWithT(t)
	s := judged()
	s.Object.Spec.FailureDomain = "asked"
	s.infrastructure.object.Unstructured = object(nil)
	g.Expect(s.copyInfrastructure(inframachine.At(version.V1Beta1))).To(Succeed())
	g.Expect(s.Object.Spec.FailureDomain).To(Equal("asked"), "nothing was chosen")
	s.infrastructure.object.Unstructured = object(map[string]any{"spec.failureDomain": int64(1)})
	g.Expect(s.copyInfrastructure(inframachine.At(version.V1Beta1))).To(MatchError(ContainSubstring("spec.failureDomain")))
	s.infrastructure.object.Unstructured = object(map[string]any{"spec.failureDomain": "chosen"})
	g.Expect(s.copyInfrastructure(inframachine.At(version.V1Beta1))).To(Succeed())
	g.Expect(s.Object.Spec.FailureDomain).To(Equal("chosen"))
	g.Expect(ptr.Deref(s.Object.Status.Initialization.InfrastructureProvisioned, false)).To(BeTrue())
}
