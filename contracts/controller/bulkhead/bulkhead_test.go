package bulkhead_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/contracts/controller/bulkhead"
)

func TestShares(t *testing.T) {
	for workers, share := range map[int]int{0: 1, 1: 1, 4: 1, 7: 1, 8: 2, 20: 5} {
		g := NewWithT(t)
		b := bulkhead.ForWorkers[string](workers)
		var leave func()
		for range share {
			var entered bool
			leave, entered = b.Enter("hung")
			g.Expect(entered).To(BeTrue(), "%d workers", workers)
		}
		_, entered := b.Enter("hung")
		g.Expect(entered).To(BeFalse(), "%d workers", workers)
		_, entered = b.Enter("another")
		g.Expect(entered).To(BeTrue(), "another key has a share of its own")

		leave()
		leave()
		_, entered = b.Enter("hung")
		g.Expect(entered).To(BeTrue(), "one has left")
		_, entered = b.Enter("hung")
		g.Expect(entered).To(BeFalse(), "to leave twice frees one place")
	}
}

func TestWithoutABulkheadAllEnter(t *testing.T) {
	var none *bulkhead.Bulkhead[string]
	for range 100 {
		leave, entered := none.Enter("a")
		NewWithT(t).Expect(entered).To(BeTrue())
		leave()
	}
}

// TestNoMoreThanTheShareAtOnce: whichever callers enter and leave at the same time.
func TestNoMoreThanTheShareAtOnce(t *testing.T) {
	g := NewWithT(t)
	b := bulkhead.ForWorkers[int](12)
	var inside, most, entries atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 200 {
				leave, entered := b.Enter(1)
				if !entered {
					continue
				}
				entries.Add(1)
				if now := inside.Add(1); now > most.Load() {
					most.Store(now)
				}
				inside.Add(-1)
				leave()
			}
		})
	}
	all.Wait()
	g.Expect(entries.Load()).To(BeNumerically(">", 0))
	g.Expect(most.Load()).To(BeNumerically("<=", 3))
}

func TestPausesDiffer(t *testing.T) {
	g := NewWithT(t)
	seen := map[time.Duration]bool{}
	for range 100 {
		pause := bulkhead.Pause()
		g.Expect(pause).To(And(BeNumerically(">=", time.Second), BeNumerically("<", 2*time.Second)))
		seen[pause] = true
	}
	g.Expect(len(seen)).To(BeNumerically(">", 50))
}

// TestWhoIsTurnedAwayIsWoken: the first that waits, for each place that is free.
func TestWhoIsTurnedAwayIsWoken(t *testing.T) {
	g := NewWithT(t)
	var woken []string
	b := bulkhead.ForWorkers[string](8).Waking(func(object types.NamespacedName) { woken = append(woken, object.Name) })
	leaves := map[string][]func(){}
	enter := func(key string, n int) bool {
		leave, entered := b.EnterFor(key, types.NamespacedName{Name: fmt.Sprint(n)})
		if entered {
			leaves[key] = append(leaves[key], leave)
		}
		return entered
	}
	leave := func(key string) {
		leaves[key][0]()
		leaves[key] = leaves[key][1:]
	}

	g.Expect(enter("a", 1)).To(BeTrue())
	g.Expect(enter("a", 2)).To(BeTrue())
	for range 2 {
		g.Expect(enter("a", 3)).To(BeFalse(), "a quarter of eight is two")
		g.Expect(enter("a", 4)).To(BeFalse())
	}
	g.Expect(enter("a", 7)).To(BeFalse())
	g.Expect(enter("b", 5)).To(BeTrue(), "each key has a share of its own")

	leave("a")
	g.Expect(woken).To(Equal([]string{"3"}), "the first that waits, for the one place that there is")
	leave("a")
	g.Expect(woken).To(Equal([]string{"3", "4", "7"}), "3 has not come back: one more is woken, for each place that is free now")
	g.Expect(enter("a", 6)).To(BeTrue())
	g.Expect(enter("a", 3)).To(BeTrue())
	g.Expect(enter("a", 4)).To(BeFalse())
	leave("a")
	leave("a")
	g.Expect(woken).To(Equal([]string{"3", "4", "7", "4"}))
	leave("b")
	g.Expect(woken).To(HaveLen(4), "no caller waits for b")
}

// TestWithoutWakingNoCallerWaits: a caller that is turned away tries again by itself.
func TestWithoutWakingNoCallerWaits(t *testing.T) {
	g := NewWithT(t)
	b := bulkhead.ForWorkers[string](1)
	leave, _ := b.Enter("a")
	_, entered := b.EnterFor("a", types.NamespacedName{Name: "1"})
	g.Expect(entered).To(BeFalse())
	leave()
	_, entered = b.EnterFor("a", types.NamespacedName{Name: "2"})
	g.Expect(entered).To(BeTrue())
}

// TestWhoHasEnteredIsNotWoken, nor a caller that waits under another key.
func TestWhoHasEnteredIsNotWoken(t *testing.T) {
	g := NewWithT(t)
	var woken []string
	b := bulkhead.ForWorkers[string](8).Waking(func(object types.NamespacedName) { woken = append(woken, object.Name) })
	first, _ := b.EnterFor("a", types.NamespacedName{Name: "1"})
	second, _ := b.Enter("a")
	_, entered := b.EnterFor("a", types.NamespacedName{Name: "2"})
	g.Expect(entered).To(BeFalse())
	_, entered = b.EnterFor("a", types.NamespacedName{Name: "3"})
	g.Expect(entered).To(BeFalse())
	_, entered = b.Enter("a")
	g.Expect(entered).To(BeFalse(), "and leaves no caller to wake")
	first()
	g.Expect(woken).To(Equal([]string{"2"}))
	_, entered = b.EnterFor("a", types.NamespacedName{Name: "3"})
	g.Expect(entered).To(BeTrue(), "the first caller")
	second()
	g.Expect(woken).To(Equal([]string{"2"}))
}

// TestWaitersAreNotForgottenWhenAllTurnsAreFree: more callers wait than there are turns; each gets one.
func TestWaitersAreNotForgottenWhenAllTurnsAreFree(t *testing.T) {
	g := NewWithT(t)
	var woken []string
	b := bulkhead.ForWorkers[string](4).Waking(func(object types.NamespacedName) { woken = append(woken, object.Name) })
	leave, _ := b.Enter("a")
	for _, name := range []string{"1", "2"} {
		_, entered := b.EnterFor("a", types.NamespacedName{Name: name})
		g.Expect(entered).To(BeFalse())
	}
	leave()
	leave, entered := b.EnterFor("a", types.NamespacedName{Name: "1"})
	g.Expect(entered).To(BeTrue())
	leave()
	g.Expect(woken).To(Equal([]string{"1", "2"}))
}
