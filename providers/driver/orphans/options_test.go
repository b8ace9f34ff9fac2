package orphans

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A program that is built as usual takes nothing for an orphan before these times are over.
func TestLeastTimes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(MinPeriod()).To(Equal(time.Minute))
	g.Expect(minGrace()).To(Equal(5 * time.Minute))
	g.Expect(least("2s", time.Minute)).To(Equal(2 * time.Second))
	for _, text := range []string{"", "soon", "-1s", "0s"} {
		g.Expect(least(text, time.Minute)).To(Equal(time.Minute), text)
	}
}
