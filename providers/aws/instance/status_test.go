package instance

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
)

// TestScheduledEvents: what ends an instance is reported as what impairs it, in an order of its own: EC2 promises none, and each other
// order would be another message, and a write, with each look. Events that are over count for nothing.
func TestScheduledEvents(t *testing.T) {
	event := func(code types.EventCode, description string) types.InstanceStatusEvent {
		return types.InstanceStatusEvent{
			Code: code, Description: aws.String(description), NotBefore: aws.Time(time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)),
		}
	}
	events := []types.InstanceStatusEvent{
		event(types.EventCodeInstanceStop, "The instance is running on degraded hardware"),
		event(types.EventCodeInstanceReboot, "reboot"),
		event(types.EventCodeInstanceRetirement, "degraded"),
		event(types.EventCodeSystemMaintenance, "[Completed] maintenance"),
		event(types.EventCodeInstanceRetirement, "[Canceled] degraded"),
	}
	const at = " scheduled for 2026-12-01T10:00:00Z"
	for range 2 {
		g := NewWithT(t)
		given := slices.Clone(events)
		g.Expect(impairments(types.InstanceStatus{Events: events})).To(Equal("instance-retirement" + at + ", instance-stop" + at))
		g.Expect(scheduled(events)).To(Equal("instance-reboot" + at + ", instance-retirement" + at + ", instance-stop" + at))
		g.Expect(events).To(Equal(given), "the answer is not changed")
		slices.Reverse(events)
	}
}

// TestImpairments names each check that fails, and only these.
func TestImpairments(t *testing.T) {
	g := NewWithT(t)
	impaired := &types.InstanceStatusSummary{Status: types.SummaryStatusImpaired}
	fine := &types.InstanceStatusSummary{Status: types.SummaryStatusOk}
	g.Expect(impairments(types.InstanceStatus{})).To(BeEmpty())
	g.Expect(impairments(types.InstanceStatus{InstanceStatus: fine, SystemStatus: fine,
		AttachedEbsStatus: &types.EbsStatusSummary{Status: types.SummaryStatusOk}})).
		To(BeEmpty())
	g.Expect(impairments(types.InstanceStatus{InstanceStatus: impaired, SystemStatus: fine})).To(Equal("instance status check"))
	g.Expect(impairments(types.InstanceStatus{
		InstanceStatus: impaired, SystemStatus: impaired, AttachedEbsStatus: &types.EbsStatusSummary{Status: types.SummaryStatusImpaired},
	})).To(Equal("instance status check, system status check, attached EBS status check"))
}
