package driver

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func TestWithStatus(t *testing.T) {
	off := Status{
		State:        driverv1.InstanceStopped,
		StateCode:    "deallocated",
		StateMessage: "by the cloud",
		Interrupted:  true,
		Impaired:     "no network",
	}
	for state, replaced := range map[driverv1.InstanceState]bool{
		driverv1.InstancePending: true, driverv1.InstanceRunning: true, driverv1.InstanceStopping: true, driverv1.InstanceStopped: true,
		driverv1.InstanceTerminating: false, driverv1.InstanceTerminated: false, driverv1.InstanceFailed: false,
	} {
		g := NewWithT(t)
		got := Instance{ID: "i", State: state, StateCode: "listed", Interruptible: true}.With(off)
		want := Instance{ID: "i", State: state, StateCode: "listed", Interruptible: true, Impaired: "no network"}
		if replaced {
			want = Instance{ID: "i", State: driverv1.InstanceStopped, StateCode: "deallocated", StateMessage: "by the cloud",
				Interrupted: true, Interruptible: true, Impaired: "no network"}
		}
		g.Expect(got).To(Equal(want), string(state))
	}
	g := NewWithT(t)
	listed := Instance{ID: "i", State: driverv1.InstanceStopped, StateCode: "listed", Interrupted: true}
	g.Expect(listed.With(Status{})).To(Equal(listed), "a source that knows nothing takes nothing away")
	g.Expect(Instance{State: driverv1.InstanceRunning}.With(off).Interrupted).
		To(BeFalse(), "it cannot be reclaimed: a user has deallocated it")
	g.Expect(Instance{Impaired: "old"}.With(Status{}).Impaired).To(BeEmpty(), "it passes the checks again")
}

// TestAStatusOfAnEarlierInstance under the same provider ID says nothing of the later one.
func TestAStatusOfAnEarlierInstance(t *testing.T) {
	g := NewWithT(t)
	read := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	off := Status{State: driverv1.InstanceStopped, Interrupted: true, AsOf: read}
	later := Instance{ID: "i", State: driverv1.InstanceRunning, Interruptible: true, LaunchTime: read.Add(time.Second)}
	g.Expect(later.With(off)).To(Equal(later))
	for _, launched := range []time.Time{read, read.Add(-time.Hour), {}} {
		earlier := later
		earlier.LaunchTime = launched
		g.Expect(earlier.With(off).Interrupted).To(BeTrue())
	}
}
