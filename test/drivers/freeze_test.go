package drivers

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/core/safety/freeze"
	"millwright.dev/providers/driver/orphans"
	"millwright.dev/test/doccheck"
)

// TestOrphansAreKeptInEachFreezeOfTheCore: providers read the reasons from a condition, since they do not import the core. This compares
// the two.
func TestOrphansAreKeptInEachFreezeOfTheCore(t *testing.T) {
	g := NewWithT(t)
	g.Expect(orphans.FreezeReasons()).To(ContainElement(freeze.RecoveringReason))
	g.Expect(orphans.FreezeReasons()).To(ConsistOf(doccheck.Constants(t, doccheck.Named("Reason"), "core/safety/freeze")))
}
