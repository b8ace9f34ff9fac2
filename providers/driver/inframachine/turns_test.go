package inframachine

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestTurns(t *testing.T) {
	g := NewWithT(t)
	var woken []string
	turns := newTurns(8, func(key types.NamespacedName) { woken = append(woken, key.Name) })
	key := func(n int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprint(n)} }
	enter := func(n int) bool { return turns.enter("a", key(n)) }

	g.Expect(enter(1)).To(BeTrue())
	g.Expect(enter(2)).To(BeTrue())
	for range 2 {
		g.Expect(enter(3)).To(BeFalse(), "a quarter of eight is two")
		g.Expect(enter(4)).To(BeFalse())
	}
	g.Expect(turns.enter("b", key(5))).To(BeTrue(), "each scope has its own")

	turns.leave("a")
	g.Expect(woken).To(Equal([]string{"3"}), "the first that waits, for the one turn that there is")
	turns.leave("a")
	g.Expect(woken).To(Equal([]string{"3", "4"}), "3 has not come back yet")
	g.Expect(enter(6)).To(BeTrue())
	g.Expect(enter(3)).To(BeTrue())
	g.Expect(enter(4)).To(BeFalse())
	for range 2 {
		turns.leave("a")
	}
	g.Expect(woken).To(Equal([]string{"3", "4", "4"}))
	turns.leave("b")
	g.Expect(turns.scopes).To(BeEmpty())

	g.Expect(newTurns(1, nil).enter("a", key(1))).To(BeTrue(), "at least one")
}
