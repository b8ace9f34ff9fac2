package pace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func key(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func TestPacer(t *testing.T) {
	g := NewWithT(t)
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	p := New(clk, 2, 2)
	g.Expect(p.Admit("r", key("a"))).To(BeZero())
	g.Expect(p.Admit("r", key("b"))).To(BeZero())
	g.Expect(p.Admit("r", key("c"))).To(Equal(500 * time.Millisecond))
	g.Expect(p.Admit("r", key("d"))).To(Equal(time.Second), "slots are given in order")
	g.Expect(p.Admit("r", key("d"))).To(Equal(time.Second), "asking again costs nothing")
	g.Expect(p.Admit("other", key("e"))).To(BeZero(), "each scope has its own limit")

	clk.SetTime(clk.Now().Add(500 * time.Millisecond))
	g.Expect(p.Admit("r", key("c"))).To(BeZero())
	g.Expect(p.Admit("r", key("d"))).To(Equal(500*time.Millisecond), "the slot is kept")
	g.Expect(p.Admit("r", key("c"))).To(Equal(time.Second), "a slot is used up")

	p.Forget(key("d"))
	clk.SetTime(clk.Now().Add(time.Hour))
	g.Expect(p.Admit("r", key("d"))).To(BeZero())
}

func TestNoLimit(t *testing.T) {
	p := New(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), 0, 0)
	for range 1000 {
		NewWithT(t).Expect(p.Admit("r", key("a"))).To(BeZero())
	}
}
