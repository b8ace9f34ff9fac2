package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// Each object is reconciled again once: what a process has reconciled for longer costs nothing more.
func TestLookAgain(t *testing.T) {
	g := NewWithT(t)
	r := &Reconciler[*testMachine]{}
	began := time.Unix(1e6, 0)
	for after, want := range map[time.Duration]time.Duration{0: overlap, overlap / 2: overlap / 2, overlap: 0, time.Hour: 0} {
		r.begun.since(began)
		out := r.lookAgain(began.Add(after))
		g.Expect(out.Finished()).To(BeTrue())
		g.Expect(out.After()).To(Equal(want), after.String())
	}
}
