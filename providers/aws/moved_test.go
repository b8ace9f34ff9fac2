package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/providers/aws/instance"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// stoppable reports all running instances as stopped, while stopped is set. The simulator stops none.
type stoppable struct {
	instance.API
	stopped *atomic.Bool
}

func (s stoppable) DescribeInstances(
	ctx context.Context,
	in *ec2.DescribeInstancesInput,
	opts ...func(*ec2.Options),
) (*ec2.DescribeInstancesOutput, error) {
	out, err := s.API.DescribeInstances(ctx, in, opts...)
	if err != nil || !s.stopped.Load() {
		return out, err
	}
	for _, reservation := range out.Reservations {
		for _, i := range reservation.Instances {
			if i.State.Name == types.InstanceStateNameRunning {
				i.State.Name = types.InstanceStateNameStopped
			}
		}
	}
	return out, nil
}

// A move loses the status, and with it that the instance has run before.
func TestAStoppedInstanceHasNotFailedAfterAMove(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	var stopped atomic.Bool
	f.wrap = func(api instance.API) instance.API { return stoppable{api, &stopped} }
	f.start()
	f.machine("m")
	f.becomesReady("m")
	stopped.Store(true)
	f.Eventually(f.ready("m")).Should(Equal("False InstanceStopped"))
	f.clock.step(24 * time.Hour)
	f.moved("m")
	f.Eventually(f.ready("m")).Should(Equal("False InstanceStopped"), func() string { return f.messages["m"] })
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeFalse())
	stopped.Store(false) // a user starts it
	f.becomesReady("m")
}
