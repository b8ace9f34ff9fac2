package instance

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// TestALookupThatHangsHoldsOthersNoLonger than their own calls may take; they had no effect. Those that come later share the answer.
func TestALookupThatHangsHoldsOthersNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		l := newLookup[int](clock.RealClock{}, time.Minute)
		first := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := l.get(ctx, "k", false, func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
			first <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		_, err := l.get(ctx, "k", false, func(context.Context) (int, error) { return 1, nil })
		g.Expect(time.Since(began)).To(Equal(2 * time.Second))
		g.Expect(driver.IsRefused(err)).To(BeTrue(), "%v", err)
		g.Expect(<-first).To(HaveOccurred())
		value, err := l.get(t.Context(), "k", false, func(context.Context) (int, error) { return 2, nil })
		g.Expect(value, err).To(Equal(2))
	})
}
