package inframachine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/limit"
)

// protecting is a cloud whose call to lift the protection hangs for one instance, and panics for another.
type protecting struct{ ending }

func (p *protecting) LimitScope(driver.Scope) string { return "" }

func (p *protecting) Protected(driver.Object) bool { return true }

func (p *protecting) Unprotect(ctx context.Context, _ driver.Scope, h driver.Handle) error {
	switch h.ProviderID {
	case "hangs":
		<-ctx.Done()
		return ctx.Err()
	case "panics":
		panic("a bug")
	}
	return nil
}

// One call that hangs takes its own time and not that of the others, which would be answered with its timeout, each time.
func TestAProtectionThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cloud := &protecting{}
		r := &Reconciler[driver.Object]{
			Driver:  cloud,
			cloud:   cloud,
			limiter: limit.New(clock.RealClock{}, nil),
			Options: Options{CallTimeout: time.Minute},
		}
		var handles []driver.Handle
		for _, id := range []string{"hangs", "panics", "a", "b"} {
			handles = append(handles, driver.Handle{ProviderID: id, Protected: true})
		}
		handles = append(handles, driver.Handle{ProviderID: "plain"})
		began := time.Now()
		errs := r.endInstances(t.Context(), driver.Scope{}, handles)
		g.Expect(time.Since(began)).To(Equal(time.Minute), "in simulated time: as long as one call")
		g.Expect(cloud.ended).To(Equal([]string{"plain", "a", "b"}))
		g.Expect(errs[0]).To(HaveOccurred())
		g.Expect(errs[1]).To(MatchError(ContainSubstring("panicked")))
		g.Expect(errs[2:]).To(HaveEach(BeNil()))
	})
}
