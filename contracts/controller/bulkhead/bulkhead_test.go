package bulkhead_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

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

// TestNoMoreThanTheShareAtOnce: whoever enters and leaves at the same time.
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
