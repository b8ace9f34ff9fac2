package bulkhead

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// TestNothingStaysOfAKeyWithoutWork: there may be many keys in the life of a process.
func TestNothingStaysOfAKeyWithoutWork(t *testing.T) {
	g := NewWithT(t)
	b := ForWorkers[string](1).Waking(func(types.NamespacedName) {})
	leave, _ := b.Enter("a")
	_, entered := b.EnterFor("a", types.NamespacedName{Name: "waits"})
	g.Expect(entered).To(BeFalse())
	leave()
	g.Expect(b.peers).To(BeEmpty())
}
