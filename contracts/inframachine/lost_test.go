package inframachine_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/inframachine"
)

// TestLostReasons covers IM-010: what is lost for good counts at once, what may come back after a while.
func TestLostReasons(t *testing.T) {
	g := NewWithT(t)
	for reason, grace := range inframachine.LostReasons {
		if reason == "InstanceStopped" || reason == "ObjectDeleted" {
			g.Expect(grace.Minutes()).To(BeEquivalentTo(10), reason)
		} else {
			g.Expect(grace).To(BeZero(), reason)
		}
	}
	g.Expect(inframachine.LostReasons).To(HaveLen(8))
	g.Expect(inframachine.LostReasons).NotTo(HaveKey("InsufficientCapacity"), "what only waits is not lost")
}
