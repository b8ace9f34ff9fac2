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
