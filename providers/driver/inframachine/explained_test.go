package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inventory"
)

// TestTheFirstStatusHasReady: a reconcile that has found out nothing writes no status, and one that lost a race none either.
func TestTheFirstStatusHasReady(t *testing.T) {
	s := newTestScope(&testMachine{}, time.Now(), testWriter{})
	g := NewWithT(t)
	g.Expect(s.explained()).To(BeFalse())
	s.observed.pausedBy = []string{"somebody"}
	g.Expect(s.explained()).To(BeTrue())
	s.observed.pausedBy, s.observed.state = nil, &explanation{}
	g.Expect(s.explained()).To(BeTrue())
}

// TestAListFromBeforeTheLaunchShowsAnEarlierAttempt, whose instance had the same name and provider ID.
func TestAListFromBeforeTheLaunchShowsAnEarlierAttempt(t *testing.T) {
	launched := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		token    string
		listedAt time.Time
		dropped  bool
	}{
		"an older list":         {"first", launched.Add(-time.Second), true},
		"a later list":          {"first", launched.Add(time.Second), false}, // a user has marked it: it is the object's now
		"the launch itself":     {"second", launched.Add(-time.Second), false},
		"one without any token": {"", launched.Add(-time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestScope(&testMachine{}, launched, testWriter{})
			s.launched.LastCall, s.handle.Name, s.handle.Token = &launched, "node-1", "second"
			s.view = inventory.View{
				Known:    true,
				Listed:   true,
				ListedAt: test.listedAt,
				Instance: driver.Instance{ProviderID: "p", Token: test.token},
			}
			s.dropEarlier()
			NewWithT(t).Expect(s.view.Known).To(Equal(!test.dropped))
		})
	}
}
