package driver

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestOwnerName(t *testing.T) {
	g := NewWithT(t)
	of := func(namespace, name string) string {
		return OwnerName(types.NamespacedName{Namespace: namespace, Name: name})
	}
	ns := strings.Repeat("s", 63)
	g.Expect(of("ns", "m")).To(Equal("ns/m"))
	g.Expect(of(ns, strings.Repeat("n", 192))).To(Equal(ns+"/"+strings.Repeat("n", 192)), "256 characters are not too many")

	long := of(ns, strings.Repeat("n", 193))
	g.Expect(long).To(HaveLen(256))
	g.Expect(long).To(HavePrefix(ns + "/nnn"))
	g.Expect(long).To(MatchRegexp(`:[0-9a-f]{32}$`))
	g.Expect(of(ns, strings.Repeat("n", 193))).To(Equal(long), "the same each time")
	g.Expect(of(ns, strings.Repeat("n", 194))).NotTo(Equal(long))
}

func TestName(t *testing.T) {
	for _, test := range []struct{ machine, want string }{
		{"workers-abc-de", "workers-abc-de"},
		{strings.Repeat("w", 40), strings.Repeat("w", 40)},
		{strings.Repeat("w", 41), `^w{29}-[0-9a-f]{10}$`},
		{"pool.a", `^pool-a-[0-9a-f]{10}$`},
		{"7days", `^m-7days-[0-9a-f]{10}$`},
		{"ends-", `^ends-[0-9a-f]{10}$`},
		{strings.Repeat("w", 28) + "--" + strings.Repeat("w", 28), `^w{28}-[0-9a-f]{10}$`},
	} {
		g := NewWithT(t)
		name := Name(test.machine, 40)
		g.Expect(name).To(Or(Equal(test.want), MatchRegexp(test.want)), test.machine)
		g.Expect(name).To(MatchRegexp(`^[a-z]([-a-z0-9]*[a-z0-9])?$`), "a DNS label that begins with a letter")
		g.Expect(len(name)).To(BeNumerically("<=", 40))
		g.Expect(Name(test.machine, 40)).To(Equal(name), "the same each time")
	}
	NewWithT(t).Expect(Name("a.b", 40)).NotTo(Equal(Name("a-b", 40)), "two Machines have two names")
	NewWithT(t).Expect(Name(strings.Repeat("w", 50)+"1", 40)).NotTo(Equal(Name(strings.Repeat("w", 50)+"2", 40)))
}

func TestRequestID(t *testing.T) {
	g := NewWithT(t)
	id := RequestID("mw-1-1", "create")
	g.Expect(id).To(MatchRegexp(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), "a UUID of version 8")
	g.Expect(RequestID("mw-1-1", "create")).To(Equal(id))
	g.Expect(RequestID("mw-1-2", "create")).NotTo(Equal(id), "another attempt")
	g.Expect(RequestID("mw-1-1", "delete")).NotTo(Equal(id), "another purpose")
}

func TestMarkByDigest(t *testing.T) {
	g := NewWithT(t)
	h := Handle{OwnerUID: "u", Owner: "ns/m"}
	digest := OwnerDigest("ns/m")
	g.Expect(digest).To(MatchRegexp(`^o[0-9a-f]{40}$`), "fit for a label")
	g.Expect(h.Owns(Instance{OwnerUID: "u", Owner: digest})).To(BeTrue())
	g.Expect(h.Owns(Instance{OwnerUID: "u", Owner: OwnerDigest("ns/n")})).To(BeFalse())
	g.Expect(h.Owns(Instance{OwnerUID: "v", Owner: digest})).To(BeFalse())
	g.Expect(Handle{OwnerUID: "u"}.Owns(Instance{OwnerUID: "u", Owner: OwnerDigest("")})).
		To(BeFalse(), "a handle without an owner owns nothing")
}
