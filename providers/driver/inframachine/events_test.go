package inframachine

import (
	"testing"

	. "github.com/onsi/gomega"
)

// A virtual machine of Azure may be in no zone: "runs in " said less than nothing.
func TestEventsWithoutAFailureDomain(t *testing.T) {
	g := NewWithT(t)
	g.Expect("Instance i runs" + in("")).To(Equal("Instance i runs"))
	g.Expect("Instance i runs" + in("zone-a")).To(Equal("Instance i runs in zone-a"))
}
