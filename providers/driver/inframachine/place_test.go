package inframachine

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inventory"
	"millwright.dev/providers/driver/shortage"
	"millwright.dev/providers/driver/spread"
)

// placing is a cloud with places, of which one failure domain does not answer.
type placing struct {
	driver.Driver[*testMachine]
	places []driver.Candidate
}

func (p *placing) Places(context.Context, driver.Launch[*testMachine]) ([]driver.Candidate, error) {
	return p.places, nil
}

func (*placing) LimitScope(driver.Scope) string { return "" }

func (*placing) List(context.Context, driver.Scope) ([]driver.Instance, error) {
	return nil, driver.NewIncomplete([]string{"silent"}, errors.New("silent does not answer"))
}

// TestPlacesThatDoNotAnswer are left out as long as there are others: what went there could neither be seen nor go elsewhere.
func TestPlacesThatDoNotAnswer(t *testing.T) {
	g := NewWithT(t)
	silent := driver.Candidate{Placement: driver.Placement{ID: "s", FailureDomain: "silent"}}
	answers := driver.Candidate{Placement: driver.Placement{ID: "a", FailureDomain: "answers"}, Rank: 1}
	cloud := &placing{}
	r := &Reconciler[*testMachine]{
		cloud: cloud, Options: Options{CallTimeout: time.Hour}, places: spread.NewDecisions(), shortages: shortage.New(clock.RealClock{}, 0),
		inventory: inventory.New(cloud, inventory.Options{Clock: clock.RealClock{}, Fast: time.Hour, Slow: time.Hour, Timeout: time.Hour}),
	}
	go func() { _ = r.inventory.Start(t.Context()) }()
	s := newTestScope(&testMachine{}, time.Now(), testWriter{})
	s.owner = &clusterv1.Machine{}
	r.inventory.Track(s.Key(), s.handle, false)
	g.Eventually(func() []string { return r.inventory.Silent(s.handle.Scope) }).Should(Equal([]string{"silent"}))
	for _, test := range []struct {
		places []driver.Candidate
		want   string
	}{
		{[]driver.Candidate{silent, answers}, "a"},
		{[]driver.Candidate{silent}, "s"},
	} {
		cloud.places = test.places
		r.places.Withdraw(s.machine())
		g.Expect(r.place(t.Context(), s).Finished()).To(BeTrue())
		g.Expect(s.request.Placement.ID).To(Equal(test.want))
	}
}
