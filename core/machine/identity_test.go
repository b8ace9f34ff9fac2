package machine

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestEvidence goes through the first table of "Whose Node it is" in README.md.
func TestEvidence(t *testing.T) {
	const id = "p://1"
	own := observedInfrastructure{own: true, providerID: id}
	provisioned := own
	provisioned.provisioned = true
	other := observedInfrastructure{own: true, providerID: "p://2"}
	otherProvisioned := other
	otherProvisioned.provisioned = true
	tests := []struct {
		name               string
		infra              observedInfrastructure
		before, without    bool
		want, wantDeleting evidence
	}{
		{name: "its infrastructure reports it", infra: provisioned, want: reported},
		{name: "reported, and provisioned once", infra: own, before: true, want: reported},
		{name: "not provisioned yet", infra: own, want: claimed, wantDeleting: unconfirmed},
		{name: "never provisioned, and gone", infra: observedInfrastructure{gone: true}, want: claimed, wantDeleting: unconfirmed},
		{name: "provisioned once, and gone", infra: observedInfrastructure{gone: true}, before: true, want: recorded},
		{name: "provisioned once, and cannot be read", infra: observedInfrastructure{}, before: true, want: recorded},
		{name: "provisioned once, and recreated", infra: other, before: true, want: recorded},
		{name: "its infrastructure says another", infra: other, want: claimed},
		{name: "its provisioned infrastructure says another", infra: otherProvisioned, before: true, want: claimed},
		{name: "cannot be read", infra: observedInfrastructure{}, want: claimed},
		{name: "no controller of what reports it", infra: observedInfrastructure{providerID: id, provisioned: true}, want: claimed},
		{name: "no controller of what reports it, provisioned once", infra: observedInfrastructure{providerID: id, provisioned: true}, before: true, want: recorded},
		{name: "no controller of what reports another", infra: observedInfrastructure{providerID: "p://2", provisioned: true}, before: true, want: recorded},
		{name: "provisioned, and reports none", infra: observedInfrastructure{own: true, provisioned: true}, before: true, want: recorded},
		{name: "controlled by something else", infra: observedInfrastructure{foreign: true}, before: true, want: claimed},
		{name: "no provider ID", infra: observedInfrastructure{own: true, provisioned: true}, before: true, without: true, want: claimed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ProviderID: id}}
			if test.without {
				m.Spec.ProviderID = ""
			}
			m.Status.Initialization.InfrastructureProvisioned = ptr.To(test.before)
			g.Expect(evidenceOf(m, test.infra)).To(Equal(test.want))
			m.DeletionTimestamp = ptr.To(metav1.Now())
			g.Expect(evidenceOf(m, test.infra)).To(Equal(max(test.want, test.wantDeleting)), "while it is deleted")
		})
	}
}

// someClaimant makes a claimant up.
func someClaimant(random *rand.Rand, uid string) claimant {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(uid), CreationTimestamp: metav1.Unix(int64(random.IntN(3)), 0),
	}}
	return claimant{m, evidence(random.IntN(int(reported) + 1)), random.IntN(2) == 0}
}

// TestLinkedWith: a link counts for a provider ID only when it is with a Node that has it.
func TestLinkedWith(t *testing.T) {
	g := NewWithT(t)
	m := &clusterv1.Machine{}
	nodes := []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	g.Expect(linkedWith(m, nodes)).To(BeFalse())
	g.Expect(linkedWith(m, nil)).To(BeFalse())
	m.Status.NodeRef.Name = "b"
	g.Expect(linkedWith(m, nodes)).To(BeTrue())
	g.Expect(linkedWith(m, nodes[:1])).To(BeFalse(), "its Node is another one")
	g.Expect(linkedWith(m, nil)).To(BeTrue(), "its Node is gone; who was first stays first")
}

// TestHolder: there is one holder at most, whichever Machine asks and in whatever order; it has the most evidence, and a claim alone
// neither holds anything nor changes who does.
func TestHolder(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(1, 2)) // A test that repeats.
	for range 5000 {
		var all []claimant
		for i := range random.IntN(5) {
			all = append(all, someClaimant(random, string(rune('a'+i))))
		}
		holder, equals := holderOf(all)
		shuffled := slices.Clone(all)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, _ := holderOf(shuffled)
		g.Expect(again).To(BeIdenticalTo(holder), "the order does not matter")

		withEvidence := slices.DeleteFunc(slices.Clone(all), func(c claimant) bool { return c.evidence == claimed })
		without, _ := holderOf(withEvidence)
		g.Expect(without).To(BeIdenticalTo(holder), "a claim takes nothing")
		g.Expect(holder == nil).To(Equal(len(withEvidence) == 0))
		for _, c := range all {
			if c.machine == holder {
				for _, other := range all {
					g.Expect(other.evidence).To(BeNumerically("<=", c.evidence))
					if other.evidence == c.evidence && other.linked {
						g.Expect(c.linked).To(BeTrue(), "who is linked keeps the Node")
					}
				}
			}
		}
		for _, equal := range equals {
			g.Expect(equal).NotTo(BeIdenticalTo(holder))
		}
	}
}

// TestChooseNode goes through the second table of "Whose Node it is" in README.md.
func TestChooseNode(t *testing.T) {
	const own = "m"
	machineCreated := metav1.Unix(1000, 0)
	tests := []struct {
		name      string
		known     nodeEvidence
		elsewhere []string
		claims    []string
		older     []string
		mutual    []string
		want      string
		several   bool
	}{
		{name: "no claim", want: ""},
		{name: "the expected name", known: nodeEvidence{expected: "e"}, claims: []string{"a", "e"}, want: "e"},
		{name: "only other names", known: nodeEvidence{expected: "e", linked: "a", hosts: []string{"a"}}, claims: []string{"a", own}},
		{name: "a host name", known: nodeEvidence{hosts: []string{"h"}}, claims: []string{"a", "h", own}, want: "h"},
		{name: "two host names, one linked", known: nodeEvidence{hosts: []string{"h", "i"}, linked: "i"}, claims: []string{"h", "i"}, want: "i"},
		{name: "two host names", known: nodeEvidence{hosts: []string{"h", "i"}}, claims: []string{"i", "h"}, want: "h"},
		{name: "a host name instead of the linked one", known: nodeEvidence{hosts: []string{"h"}, linked: "a"}, claims: []string{"a", "h"}, want: "h"},
		{name: "the linked one", known: nodeEvidence{linked: "l"}, claims: []string{"a", "l", own}, want: "l"},
		{name: "the linked one is gone", known: nodeEvidence{linked: "l"}, claims: []string{"a"}},
		{name: "the linked one is gone, and the Machine's name", known: nodeEvidence{linked: "l"}, claims: []string{"a", own}, want: own},
		{name: "the Machine's name", claims: []string{"a", own}, want: own},
		{name: "one that nothing is known of", claims: []string{"a"}, want: "a"},
		{name: "one of another Machine", claims: []string{"a"}, elsewhere: []string{"a"}},
		{name: "one of another Machine beside one that nothing is known of", claims: []string{"a", "b"}, elsewhere: []string{"a"}, want: "b"},
		{name: "several that nothing is known of", claims: []string{"a", "b"}, several: true},
		{name: "unconfirmed: by name", known: nodeEvidence{unconfirmed: true}, claims: []string{own}, want: own},
		{name: "unconfirmed: not without a name", known: nodeEvidence{unconfirmed: true}, claims: []string{"a"}},
		{name: "unconfirmed: not an older Node", known: nodeEvidence{unconfirmed: true}, claims: []string{own}, older: []string{own}},
		{name: "unconfirmed: an older Node that names the Machine", known: nodeEvidence{unconfirmed: true},
			claims: []string{"a", "b"}, older: []string{"a", "b"}, mutual: []string{"b"}, want: "b"},
		{name: "unconfirmed: two that name the Machine", known: nodeEvidence{unconfirmed: true},
			claims: []string{"a", "b"}, mutual: []string{"a", "b"}, several: true},
		{name: "unconfirmed: one that names the Machine and is another's", known: nodeEvidence{unconfirmed: true},
			claims: []string{"a"}, mutual: []string{"a"}, elsewhere: []string{"a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			known := test.known
			known.machine, known.created = own, machineCreated
			known.elsewhere = func(node string) string {
				if slices.Contains(test.elsewhere, node) {
					return "other"
				}
				return ""
			}
			var claims []nodeClaim
			for _, name := range test.claims {
				created := machineCreated
				if slices.Contains(test.older, name) {
					created = metav1.NewTime(machineCreated.Add(-time.Second))
				}
				claims = append(claims, nodeClaim{name, created, slices.Contains(test.mutual, name)})
			}
			got, several := known.chooseNode(claims)
			g.Expect(got).To(Equal(test.want))
			g.Expect(several).To(Equal(test.several))
			if len(claims) > 0 && got == "" && !several {
				g.Expect(known.refusal("p://1", got, claims)).To(ContainSubstring(claims[0].name))
			}
		})
	}
}

// TestChooseNodeIsNotMovedByClaims: once a Node was chosen and linked, no further claim of any name changes that, unless it is
// a name that bootstrap or infrastructure provider have reported. A Node of another name than the expected one is never chosen.
func TestChooseNodeIsNotMovedByClaims(t *testing.T) {
	g := NewWithT(t)
	random := rand.New(rand.NewPCG(3, 4)) // A test that repeats.
	names := []string{"a", "b", "c", "d", "m"}
	pick := func(n int) (some []string) {
		for range random.IntN(n) {
			some = append(some, names[random.IntN(len(names))])
		}
		return some
	}
	toClaims := func(names []string) (claims []nodeClaim) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			claims = append(claims, nodeClaim{name: name})
		}
		return claims
	}
	for range 20000 {
		elsewhere := pick(3)
		known := nodeEvidence{machine: "m", hosts: pick(3), elsewhere: func(node string) string {
			if slices.Contains(elsewhere, node) {
				return "other"
			}
			return ""
		}}
		if random.IntN(3) == 0 {
			known.expected = names[random.IntN(len(names))]
		}
		claimed := pick(4)
		chosen, _ := known.chooseNode(toClaims(claimed))
		if chosen == "" {
			continue
		}
		g.Expect(claimed).To(ContainElement(chosen))
		if known.expected != "" {
			g.Expect(chosen).To(Equal(known.expected))
		}
		known.linked = chosen
		more := append(slices.Clone(claimed), pick(4)...)
		again, several := known.chooseNode(toClaims(more))
		g.Expect(several).To(BeFalse(), "a claim makes nothing doubtful that was decided")
		if again != chosen {
			g.Expect(known.hosts).To(ContainElement(again), "only a name that the infrastructure reports")
			g.Expect(known.hosts).NotTo(ContainElement(chosen))
		}
	}
}

// TestRefusalsAreShort: who registers many Nodes does not fill the status.
func TestRefusalsAreShort(t *testing.T) {
	g := NewWithT(t)
	known := nodeEvidence{expected: "e", elsewhere: func(string) string { return "" }}
	var claims []nodeClaim
	for i := range 500 {
		claims = append(claims, nodeClaim{name: strings.Repeat("n", i%200+1)})
	}
	g.Expect(known.refusal("p://1", "", claims)).To(ContainSubstring("and 497 more"))
}
