package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// TestHeldReasonsAreNewOnce: a reason that few Machines have is an event as well, and none because another one has more Machines now.
func TestHeldReasonsAreNewOnce(t *testing.T) {
	g := NewWithT(t)
	var shown heldSets
	key := types.NamespacedName{Namespace: "held", Name: "s"}
	for i, step := range []struct {
		counts map[string]int
		before string
		fresh  bool
	}{
		{map[string]int{"MaxInFlight": 5}, "MaxInFlight", false}, // the process is new, the condition is not
		{map[string]int{"MaxInFlight": 5, "MaxRetryReached": 1}, "MaxInFlight", true},
		{map[string]int{"MaxInFlight": 1, "MaxRetryReached": 5}, "MaxInFlight", false},
		{map[string]int{"MaxInFlight": 5, "MaxRetryReached": 1}, "MaxRetryReached", false},
		{nil, "MaxInFlight", false},
		{map[string]int{"MaxInFlight": 1}, "", true},
		{nil, "MaxInFlight", false},
	} {
		g.Expect(shown.set(key, step.counts, step.before)).To(Equal(step.fresh), "%d", i)
	}
	g.Expect(shown.sets).To(BeEmpty())
}
