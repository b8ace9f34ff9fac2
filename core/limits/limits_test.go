package limits_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/limits"
)

func TestAddresses(t *testing.T) {
	good := clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}
	many := make(clusterv1.MachineAddresses, 300)
	for i := range many {
		many[i] = good
	}
	for _, test := range []struct {
		name    string
		list    clusterv1.MachineAddresses
		kept    int
		wantErr string
	}{
		{"all are good", clusterv1.MachineAddresses{good, good}, 2, ""},
		{"none", nil, 0, ""},
		{"an unknown type", clusterv1.MachineAddresses{{Type: "PodIP", Address: "10.1.0.1"}, good}, 1, `the type "PodIP" is unknown`},
		{"256 characters of several bytes", clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: strings.Repeat("ä", 256)}}, 1, ""},
		{"257 characters", clusterv1.MachineAddresses{{Type: clusterv1.MachineHostName, Address: strings.Repeat("x", 257)}, good}, 1, "longer than 256"},
		{"too many", many, 256, "more than 256"},
	} {
		g := NewWithT(t)
		kept, invalid := limits.Addresses(test.list)
		g.Expect(kept).To(HaveLen(test.kept), test.name)
		if test.wantErr == "" {
			g.Expect(invalid).To(BeEmpty(), test.name)
		} else {
			g.Expect(invalid).To(ConsistOf(ContainSubstring(test.wantErr)), test.name)
		}
	}
}

func TestFailureDomains(t *testing.T) {
	g := NewWithT(t)
	domain, invalid := limits.FailureDomain("status.failureDomain", strings.Repeat("x", 300))
	g.Expect(domain).To(BeEmpty())
	g.Expect(invalid).To(ConsistOf(And(HavePrefix("status.failureDomain: "), HaveSuffix("longer than 256 characters"))))
	domain, invalid = limits.FailureDomain("status.failureDomain", strings.Repeat("ä", 256))
	g.Expect(domain).NotTo(BeEmpty())
	g.Expect(invalid).To(BeEmpty())

	var list []clusterv1.FailureDomain
	for i := range 101 {
		list = append(list, clusterv1.FailureDomain{Name: fmt.Sprint("zone-", i)})
	}
	kept, invalid := limits.FailureDomains(append([]clusterv1.FailureDomain{{Name: "zone-0"}, {Name: strings.Repeat("x", 257)}, {}}, list...))
	g.Expect(kept).To(HaveLen(100))
	g.Expect(invalid).
		To(ConsistOf(ContainSubstring("longer than 256"), ContainSubstring("without a name"), ContainSubstring("occurs twice"),
			ContainSubstring("more than 100")))
}

func TestEndpoint(t *testing.T) {
	g := NewWithT(t)
	good := clusterv1.APIEndpoint{Host: "h", Port: 6443}
	kept, invalid := limits.Endpoint(good)
	g.Expect(kept).To(Equal(good))
	g.Expect(invalid).To(BeEmpty())
	kept, invalid = limits.Endpoint(clusterv1.APIEndpoint{Host: strings.Repeat("h", 513), Port: 6443})
	g.Expect(kept.IsZero()).To(BeTrue())
	g.Expect(invalid).To(ConsistOf(ContainSubstring("longer than 512")))
}

func TestVersions(t *testing.T) {
	g := NewWithT(t)
	list := []clusterv1.StatusVersion{{Version: strings.Repeat("v", 257), Replicas: 1}}
	for range 33 {
		list = append(list, clusterv1.StatusVersion{Version: "v1.36.3", Replicas: 1})
	}
	kept, invalid := limits.Versions(list)
	g.Expect(kept).To(HaveLen(32))
	g.Expect(invalid).To(ConsistOf(ContainSubstring("longer than 256"), ContainSubstring("more than 32")))
}

func TestMessage(t *testing.T) {
	g := NewWithT(t)
	g.Expect(limits.Message("Infra m", nil)).To(BeEmpty())
	message := limits.Message("Infra m", []string{"1", "2", "3", "4", "5", "6", "7"})
	g.Expect(message).To(HavePrefix("Infra m reports values that the API does not accept, which are left out: 1; 2; 3; 4; 5; and 2 more."))
}

// TestWhatJustFitsIsKept: the limits are those of the API to the character, in characters and not in bytes.
func TestWhatJustFitsIsKept(t *testing.T) {
	g := NewWithT(t)
	text := func(n int) string { return strings.Repeat("ä", n) }
	domains, invalid := limits.FailureDomains([]clusterv1.FailureDomain{{Name: text(256)}})
	g.Expect(domains).To(HaveLen(1))
	g.Expect(invalid).To(BeEmpty())
	endpoint := clusterv1.APIEndpoint{Host: text(512), Port: 6443}
	kept, invalid := limits.Endpoint(endpoint)
	g.Expect(kept).To(Equal(endpoint))
	g.Expect(invalid).To(BeEmpty())
	versions, invalid := limits.Versions([]clusterv1.StatusVersion{{Version: text(256), Replicas: 1}})
	g.Expect(versions).To(HaveLen(1))
	g.Expect(invalid).To(BeEmpty())
}

// TestInvalidValuesAreNamedAsFarAsTheyFit: five invalid are named and no more, and of a wrong value its beginning.
func TestInvalidValuesAreNamedAsFarAsTheyFit(t *testing.T) {
	g := NewWithT(t)
	g.Expect(limits.Message("Infra m", []string{"1"})).To(ContainSubstring("left out: 1. "))
	g.Expect(limits.Message("Infra m", []string{"1", "2", "3", "4", "5"})).To(ContainSubstring("left out: 1; 2; 3; 4; 5. "))
	for length, shown := range map[int]string{1: "x", 40: strings.Repeat("x", 40), 41: strings.Repeat("x", 40) + "…"} {
		_, invalid := limits.Addresses(clusterv1.MachineAddresses{{Type: clusterv1.MachineAddressType(strings.Repeat("x", length))}})
		g.Expect(invalid).To(ConsistOf(ContainSubstring(`"` + shown + `"`)))
	}
}
