package limit

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// collecting is a driver with all that the collector of orphans asks for.
type collecting struct{ *fake }

func (f collecting) Remark(_ context.Context, s driver.Scope, h []driver.Handle, lineage string) []error {
	err := f.call("Remark", f.same(s, h) && lineage == "l_e_1")
	return []error{nil, err, nil}
}

func (f collecting) ListLeftovers(_ context.Context, s driver.Scope) ([]driver.Leftover, error) {
	return []driver.Leftover{{ID: "v"}}, f.call("ListLeftovers", s == aScope)
}

func TestACollectorsCallsAreLimited(t *testing.T) {
	r := newRig(t, nil)
	NewWithT(t).Expect(Remarker[machine](&fake{}, r.Limiter)).To(BeNil(), "the driver has none")
	NewWithT(t).Expect(LeftoverLister[machine](&fake{}, r.Limiter)).To(BeNil())

	f := collecting{&fake{}}
	remarker, lister := Remarker[machine](f, r.Limiter), LeftoverLister[machine](f, r.Limiter)
	r.Expect(remarker.Remark(t.Context(), aScope, handles, "l_e_1")).To(Equal([]error{nil, nil, nil}))
	r.Expect(lister.ListLeftovers(t.Context(), aScope)).To(Equal([]driver.Leftover{{ID: "v"}}))

	// A throttle closes the kind of the call for the account, so that the next one is not made.
	f.err = driver.NewThrottleError("CreateTags", "Throttled", time.Hour, errors.New("slow down"))
	r.Expect(remarker.Remark(t.Context(), aScope, handles, "l_e_1")[1]).To(MatchError(f.err))
	_, err := lister.ListLeftovers(t.Context(), aScope)
	r.Expect(err).To(MatchError(f.err))
	made := len(f.calls)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range remarker.Remark(ctx, aScope, handles, "l_e_1") {
		r.Expect(err).To(HaveOccurred())
	}
	_, err = lister.ListLeftovers(ctx, aScope)
	r.Expect(err).To(HaveOccurred())
	r.Expect(f.calls).To(HaveLen(made))
}
