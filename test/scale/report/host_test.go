package report

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestThisHost(t *testing.T) {
	g := NewWithT(t)
	h := ThisHost()
	g.Expect(h.CPUs).To(BeNumerically(">", 0))
	g.Expect(h.Memory).To(BeNumerically(">", 0))
	g.Expect(h.Go).To(HavePrefix("go"))
}
