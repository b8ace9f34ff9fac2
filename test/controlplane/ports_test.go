package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestAPortIsReturnedOnce, even if nothing listens on it.
func TestAPortIsReturnedOnce(t *testing.T) {
	g := NewWithT(t)
	given := map[int]bool{}
	for range 50 {
		port, err := freePort(25000, 25200)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(given).NotTo(HaveKey(port))
		given[port] = true
	}
}
