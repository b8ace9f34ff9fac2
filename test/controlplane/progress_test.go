package controlplane

import (
	"bytes"
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

// TestProgressKeepsErrors: lines come in pieces; packages are counted, everything else is kept.
func TestProgressKeepsErrors(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	p := newProgress(&out, "example")
	for _, piece := range []string{"go: downloading a.b/c v1.0.0\nk8s.io/api/core", "/v1\nmain\n# a.b/c\n./x.go:1:2: unde", "fined: y\nlast"} {
		_, err := io.WriteString(p, piece)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(p.line()).To(HavePrefix("example: 2 packages compiled in 0s"))
	p.end()
	g.Expect(p.rest()).To(Equal("# a.b/c\n./x.go:1:2: undefined: y\nlast"))
	g.Expect(out.String()).To(BeEmpty(), "nothing is printed in the first half minute")
}
