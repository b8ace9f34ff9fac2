package inframachine

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

func TestAssess(t *testing.T) {
	launched := time.Unix(100000, 0)
	const timeout, grace = 20 * time.Minute, 5 * time.Minute
	listed := func(i driver.Instance) inventory.View {
		return inventory.View{Known: true, Listed: true, ListedAt: launched, Instance: i}
	}
	in := func(state driverv1.InstanceState) inventory.View { return listed(driver.Instance{State: state}) }
	put := func(state driverv1.InstanceState) inventory.View {
		v := in(state)
		v.Listed = false
		return v
	}
	unconfirmed := func(state driverv1.InstanceState) inventory.View {
		v := put(state)
		v.ListedAt = time.Time{}
		return v
	}
	absent := inventory.View{ListedAt: launched}
	unlisted := inventory.View{}

	for name, test := range map[string]struct {
		view        inventory.View
		age         time.Duration
		provisioned bool
		reason      string
		want        assessment
	}{
		"running":                       {in(driverv1.InstanceRunning), 0, false, "InstanceRunning", assessment{}},
		"running later":                 {in(driverv1.InstanceRunning), time.Hour, true, "InstanceRunning", assessment{}},
		"pending":                       {in(driverv1.InstancePending), time.Minute, false, "InstancePending", assessment{inTransition: true, after: 19 * time.Minute}},
		"pending too long":              {in(driverv1.InstancePending), timeout, false, "InstanceLaunchTimeout", assessment{failure: true}},
		"pending again":                 {in(driverv1.InstancePending), time.Hour, true, "InstancePending", assessment{inTransition: true}},
		"stopping":                      {in(driverv1.InstanceStopping), time.Hour, true, "InstanceStopping", assessment{inTransition: true}},
		"stopped":                       {in(driverv1.InstanceStopped), time.Hour, true, "InstanceStopped", assessment{}},
		"stopped and never run":         {in(driverv1.InstanceStopped), timeout, false, "InstanceLaunchTimeout", assessment{failure: true}},
		"terminating":                   {in(driverv1.InstanceTerminating), time.Hour, true, "InstanceTerminated", assessment{failure: true}},
		"terminated":                    {in(driverv1.InstanceTerminated), time.Hour, true, "InstanceTerminated", assessment{failure: true}},
		"terminated and never run":      {in(driverv1.InstanceTerminated), time.Minute, false, "InstanceLaunchFailed", assessment{failure: true}},
		"short and never run":           {listed(driver.Instance{State: driverv1.InstanceTerminated, Refused: driver.ClassCapacity}), 0, false, "", assessment{relaunch: true}},
		"short and ending":              {listed(driver.Instance{State: driverv1.InstanceTerminating, Refused: driver.ClassCapacity}), 0, false, "InsufficientCapacity", assessment{inTransition: true, after: timeout}},
		"short and ending too long":     {listed(driver.Instance{State: driverv1.InstanceTerminating, Refused: driver.ClassCapacity}), timeout, false, "InstanceLaunchTimeout", assessment{failure: true}},
		"short after it ran":            {listed(driver.Instance{State: driverv1.InstanceTerminated, Refused: driver.ClassCapacity}), 0, true, "InstanceTerminated", assessment{failure: true}},
		"over a quota":                  {listed(driver.Instance{State: driverv1.InstanceTerminated, Refused: driver.ClassQuota}), 0, false, "", assessment{relaunch: true}},
		"over a quota and ending":       {listed(driver.Instance{State: driverv1.InstanceTerminating, Refused: driver.ClassQuota}), 0, false, "QuotaExceeded", assessment{inTransition: true, after: timeout}},
		"interrupted":                   {listed(driver.Instance{State: driverv1.InstanceTerminating, Interrupted: true}), time.Hour, true, "InstanceInterrupted", assessment{failure: true}},
		"interrupted and never run":     {listed(driver.Instance{State: driverv1.InstanceTerminated, Interrupted: true}), 0, false, "InstanceInterrupted", assessment{failure: true}},
		"launched, not listed yet":      {put(driverv1.InstancePending), time.Minute, false, "InstancePending", assessment{inTransition: true, after: 4 * time.Minute}},
		"launched, never listed":        {put(driverv1.InstancePending), grace, false, "InstanceNotVisible", assessment{inTransition: true, confirm: true}},
		"running, not listed yet":       {put(driverv1.InstanceRunning), time.Minute, false, "InstanceRunning", assessment{after: 4 * time.Minute}},
		"before the first list, graced": {unconfirmed(driverv1.InstancePending), grace, false, "InstancePending", assessment{inTransition: true, after: 15 * time.Minute}},
		"before the first list, runs":   {unconfirmed(driverv1.InstanceRunning), time.Hour, true, "InstanceRunning", assessment{}},
		"absent shortly after launch":   {absent, time.Minute, false, "InstanceNotVisible", assessment{inTransition: true, after: 4 * time.Minute}},
		"absent shortly after running":  {absent, time.Minute, true, "", assessment{after: 4 * time.Minute}},
		"absent past the grace":         {absent, grace, false, "InstanceNotVisible", assessment{inTransition: true, confirm: true}},
		"absent long after running":     {absent, time.Hour, true, "", assessment{confirm: true}},
		"stopped by the cloud":          {listed(driver.Instance{State: driverv1.InstanceStopped, Interrupted: true}), time.Hour, true, "InstanceInterrupted", assessment{failure: true}},
		"failed for lack of capacity":   {listed(driver.Instance{State: driverv1.InstanceFailed, Refused: driver.ClassCapacity}), 0, false, "", assessment{relaunch: true}},
		"failed, to be corrected":       {listed(driver.Instance{State: driverv1.InstanceFailed, Refused: driver.ClassUnresolved}), 0, false, "", assessment{relaunch: true}},
		"failed permanently":            {listed(driver.Instance{State: driverv1.InstanceFailed, Refused: driver.ClassTerminal}), 0, false, "InstanceLaunchFailed", assessment{failure: true}},
		"failed, unknown why":           {listed(driver.Instance{State: driverv1.InstanceFailed}), 0, false, "InstanceLaunchFailed", assessment{failure: true}},
		"failed after it ran":           {listed(driver.Instance{State: driverv1.InstanceFailed, Refused: driver.ClassCapacity}), time.Hour, true, "InstanceFailed", assessment{}},
		"ended, permanently":            {listed(driver.Instance{State: driverv1.InstanceTerminated, Refused: driver.ClassTerminal}), 0, false, "InstanceLaunchFailed", assessment{failure: true}},
		"ended, denied":                 {listed(driver.Instance{State: driverv1.InstanceTerminated, Refused: driver.ClassAuth}), 0, false, "", assessment{relaunch: true}},
		"before the first list":         {unlisted, time.Hour, false, "InstanceNotVisible", assessment{inTransition: true}},
		"after a restart, long running": {unlisted, time.Hour, true, "", assessment{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			seen := observation{
				view:          test.view,
				asOf:          launched.Add(test.age),
				launchedAt:    launched,
				provisioned:   test.provisioned,
				launchTimeout: timeout,
				grace:         grace,
			}
			got := assess(seen, launched.Add(test.age))
			reason := ""
			if got.why != nil {
				reason, got.why = got.why.reason, nil
			}
			g.Expect(reason).To(Equal(test.reason))
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestAssessAfterTheStatusWasLost(t *testing.T) {
	now := time.Unix(100000, 0)
	for state, want := range map[driverv1.InstanceState]assessment{
		driverv1.InstanceRunning:  {},
		driverv1.InstanceStopping: {inTransition: true},
		driverv1.InstanceStopped:  {},
		driverv1.InstancePending:  {failure: true}, // it has been starting all the time
	} {
		view := inventory.View{Known: true, Listed: true, ListedAt: now, Instance: driver.Instance{State: state}}
		got := assess(
			observation{view: view, asOf: now, launchedAt: now.Add(-time.Hour), statusLost: true, launchTimeout: time.Minute, grace: time.Minute},
			now,
		)
		NewWithT(t).Expect(got.why).NotTo(BeNil())
		got.why = nil
		NewWithT(t).Expect(got).To(Equal(want), string(state))
	}
}

// TestAnInstanceThatCannotBeReadHasNotFailed: that it did not run in time is known only of one that was read since.
func TestAnInstanceThatCannotBeReadHasNotFailed(t *testing.T) {
	launched := time.Unix(100000, 0)
	read := launched.Add(time.Minute)
	view := inventory.View{Known: true, Listed: true, ListedAt: read, Instance: driver.Instance{State: driverv1.InstancePending}}
	got := assess(observation{view: view, asOf: read, launchedAt: launched, launchTimeout: 3 * time.Minute}, launched.Add(time.Hour))
	NewWithT(t).Expect(got.failure).To(BeFalse())
	NewWithT(t).Expect(got.after).To(Equal(rereadLate))
}

func TestAnInstanceThatIsNotListedIsLookedAtWhenTheFirstOfItsTimesIsOver(t *testing.T) {
	launched := time.Unix(100000, 0)
	view := inventory.View{Known: true, ListedAt: launched, Instance: driver.Instance{State: driverv1.InstancePending}}
	got := assess(
		observation{view: view, launchedAt: launched, launchTimeout: 3 * time.Minute, grace: 5 * time.Minute},
		launched.Add(time.Minute),
	)
	NewWithT(t).Expect(got.after).To(Equal(2*time.Minute), "its launch times out before its absence is believed")
}

func TestDetail(t *testing.T) {
	g := NewWithT(t)
	g.Expect(detail(driver.Instance{})).To(BeEmpty())
	g.Expect(detail(driver.Instance{StateCode: "C"})).To(Equal(": C"))
	g.Expect(detail(driver.Instance{StateMessage: "m"})).To(Equal(": m"))
	g.Expect(detail(driver.Instance{StateCode: "C", StateMessage: "m"})).To(Equal(": C: m"))
	g.Expect(listError(nil)).To(BeEmpty())
	g.Expect(listError(errors.New("no"))).To(ContainSubstring("no"))
}
