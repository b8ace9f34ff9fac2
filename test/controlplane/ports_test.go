package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestAPortIsGivenOutOnce: nobody listens on those that were given out before, and yet none of them comes again.
func TestAPortIsGivenOutOnce(t *testing.T) {
	g := NewWithT(t)
	given := map[int]bool{}
	for range 50 {
		port, err := freePort(25000, 25200)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(given).NotTo(HaveKey(port))
		given[port] = true
	}
}
