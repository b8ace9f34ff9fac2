package inframachine

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inventory"
)

// TestEachStateAndEvent: what follows from each state of an instance, in each of the ways in which it may come to that, before and after it
// has run. What follows is a reason; "!" marks one with which the machine has failed permanently, "again" another launch, "ask" a look at
// the cloud itself.
func TestEachStateAndEvent(t *testing.T) {
	type outcomes struct{ young, ran string }
	events := map[string]driver.Instance{
		"": {}, "interrupted": {Interrupted: true}, "refused": {Refused: driver.ClassCapacity}, "refused permanently": {Refused: driver.ClassTerminal},
	}
	pending, running := outcomes{"InstancePending", "InstancePending"}, outcomes{"InstanceRunning", "InstanceRunning"}
	stopping, stopped := outcomes{"InstanceStopping", "InstanceStopping"}, outcomes{"InstanceStopped", "InstanceStopped"}
	taken := outcomes{"!InstanceInterrupted", "!InstanceInterrupted"}
	ended, failed := outcomes{"!InstanceLaunchFailed", "!InstanceTerminated"}, outcomes{"!InstanceLaunchFailed", "InstanceFailed"}
	for state, want := range map[driverv1.InstanceState]map[string]outcomes{
		driverv1.InstancePending:  {"": pending, "interrupted": pending, "refused": pending, "refused permanently": pending},
		driverv1.InstanceRunning:  {"": running, "interrupted": running, "refused": running, "refused permanently": running},
		driverv1.InstanceStopping: {"": stopping, "interrupted": stopping, "refused": stopping, "refused permanently": stopping},
		driverv1.InstanceStopped:  {"": stopped, "interrupted": taken, "refused": stopped, "refused permanently": stopped},
		driverv1.InstanceTerminating: {"": ended, "interrupted": taken, "refused": {"InsufficientCapacity", "!InstanceTerminated"},
			"refused permanently": ended},
		driverv1.InstanceTerminated: {"": ended, "interrupted": taken, "refused": {"again", "!InstanceTerminated"},
			"refused permanently": ended},
		driverv1.InstanceFailed: {"": failed, "interrupted": {"!InstanceInterrupted", "InstanceFailed"},
			"refused": {"again", "InstanceFailed"}, "refused permanently": failed},
		driverv1.InstanceMissing: {"": pending, "interrupted": pending, "refused": pending, "refused permanently": pending},
		// no driver reports that
		"SomeDay": {"": pending, "interrupted": pending, "refused": pending, "refused permanently": pending},
	} {
		for event, i := range events {
			for ran, wanted := range map[bool]string{false: want[event].young, true: want[event].ran} {
				t.Run(string(state)+" "+event+map[bool]string{true: " after it ran"}[ran], func(t *testing.T) {
					i.State = state
					launched := time.Unix(100000, 0)
					seen := observation{
						view: inventory.View{Known: true, Listed: true, ListedAt: launched, Instance: i}, asOf: launched, launchedAt: launched,
						provisioned: ran, launchTimeout: 20 * time.Minute, grace: 5 * time.Minute,
					}
					NewWithT(t).Expect(outcomeOf(assess(seen, launched.Add(time.Minute)))).To(Equal(wanted))
				})
			}
		}
	}
	// Absence, in a list and for certain.
	for name, test := range map[string]struct {
		age  time.Duration
		ran  bool
		want string
	}{
		"not listed yet": {time.Minute, false, "InstanceNotVisible"}, "never listed": {time.Hour, false, "ask"},
		"not listed right after it ran": {time.Minute, true, "nothing"}, "not listed any more": {time.Hour, true, "ask"},
	} {
		t.Run(name, func(t *testing.T) {
			launched := time.Unix(100000, 0)
			seen := observation{
				view:          inventory.View{ListedAt: launched},
				launchedAt:    launched,
				provisioned:   test.ran,
				launchTimeout: 20 * time.Minute,
				grace:         5 * time.Minute,
			}
			NewWithT(t).Expect(outcomeOf(assess(seen, launched.Add(test.age)))).To(Equal(test.want))
		})
	}
	NewWithT(t).Expect(outcomeOf(vanished())).To(Equal("!InstanceVanished"))
}

func outcomeOf(a assessment) string {
	reason := ""
	if a.why != nil {
		reason = a.why.reason
	}
	switch {
	case a.relaunch:
		return "again"
	case a.confirm:
		return "ask"
	case a.failure:
		return "!" + reason
	}
	return cmp.Or(reason, "nothing")
}
