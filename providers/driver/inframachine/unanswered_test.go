package inframachine

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// miscounting is a driver that gives another number of answers than it was asked for.
type miscounting struct {
	driver.Driver[driver.Object]
	observed, deleted int
}

func (d *miscounting) Observe(_ context.Context, _ driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	answers := make([]driver.Answer[driver.Instance], d.observed)
	for n := range min(d.observed, len(handles)) {
		h := handles[n]
		answers[n].Value = driver.Instance{ProviderID: h.ProviderID, OwnerUID: h.OwnerUID, Owner: h.Owner, State: driverv1.InstanceRunning}
	}
	return answers
}

func (d *miscounting) Delete(context.Context, driver.Scope, []driver.Handle) []error {
	return make([]error, d.deleted)
}

// A reconcile takes an answer without an error for an instance that is ending. A panic in a batch, unlike one in a reconcile,
// ends the process.
func TestWhatTheDriverDoesNotAnswerIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		observed, deleted int
		accepted          []bool
	}{
		"all":                         {2, 2, []bool{true, true}},
		"an observation is missing":   {1, 1, []bool{true, false}},
		"no observation":              {0, 0, []bool{false, false}},
		"an observation too many":     {3, 2, []bool{true, true}},
		"a termination is missing":    {2, 1, []bool{true, false}},
		"no termination":              {2, 0, []bool{false, false}},
		"a termination too many":      {2, 3, []bool{true, true}},
		"one of each is not answered": {1, 0, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &Reconciler[driver.Object]{cloud: &miscounting{observed: test.observed, deleted: test.deleted}}
			r.Options.CallTimeout = time.Minute
			answers := r.terminateAll(t.Context(), driver.Scope{Location: "scope"}, []driver.Handle{
				{ProviderID: "a", OwnerUID: "1", Owner: "ns/a"}, {ProviderID: "b", OwnerUID: "2", Owner: "ns/b"},
			})
			g.Expect(answers).To(HaveLen(2))
			for n, accepted := range test.accepted {
				g.Expect(answers[n].Err == nil).To(Equal(accepted), "%d: %v", n, answers[n].Err)
				if accepted {
					g.Expect(answers[n].Value.accepted).To(BeTrue())
					g.Expect(answers[n].Value.instance.State).To(Equal(driverv1.InstanceTerminating))
				}
			}
		})
	}
}
