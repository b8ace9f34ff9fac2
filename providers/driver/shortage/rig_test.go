package shortage

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/providers/driver"
)

type rig struct {
	*GomegaWithT
	*Memory
	fake *clocktesting.FakePassiveClock
}

func newRig(t *testing.T) *rig {
	fake := clocktesting.NewFakePassiveClock(time.Unix(1e6, 0))
	return &rig{GomegaWithT: NewWithT(t), Memory: New(fake, 0), fake: fake}
}

func (r *rig) passes(d time.Duration) { r.fake.SetTime(r.fake.Now().Add(d)) }

// at returns how long ago the candidate lacked capacity in scope r; negative if it did not.
func (r *rig) at(c driver.Candidate) time.Duration {
	when := r.Mark("r", []driver.Candidate{c})[0].ShortSince
	if when.IsZero() {
		return -1
	}
	return r.fake.Since(when)
}

func (r *rig) short(c driver.Candidate) bool { return r.at(c) >= 0 }

// candidate returns that of an instance type on a market, in a subnet that is named after its zone.
func candidate(instanceType, zone, market string) driver.Candidate {
	return driver.Candidate{
		Placement: driver.Placement{ID: "subnet-" + zone, FailureDomain: zone[:1], InstanceType: instanceType, Market: market},
	}
}

func lacking(onlyPlace bool) error {
	return fmt.Errorf("wrapped: %w",
		&driver.Error{Class: driver.ClassCapacity, Operation: "Run", Code: "None", OnlyPlace: onlyPlace, Err: errors.New("no room")})
}
