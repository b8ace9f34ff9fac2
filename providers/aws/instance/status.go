package instance

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"millwright.dev/providers/driver"
)

var _ driver.StatusLister = (*Driver)(nil)

// endingEvents are the scheduled events after which an instance is gone or stopped. The others (a reboot, maintenance of the network) pass.
var endingEvents = []types.EventCode{types.EventCodeInstanceRetirement, types.EventCodeInstanceStop}

// troubles are the filters that select what is wrong with instances. EC2 asks for all filters of a call at once, so each is a call, which
// returns little: those for which nothing is wrong are left out.
var troubles = []types.Filter{
	{Name: aws.String("instance-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
	{Name: aws.String("system-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
	{Name: aws.String("attached-ebs-status.status"), Values: []string{string(types.SummaryStatusImpaired)}},
	{Name: aws.String("event.code"), Values: eventCodes()},
}

// eventCodes are those of all events.
func eventCodes() []string {
	var codes []string
	for _, code := range types.EventCode("").Values() {
		codes = append(codes, string(code))
	}
	return codes
}

// ListStatus returns the instances that fail EC2's checks, or for which EC2 has scheduled events.
func (d *Driver) ListStatus(ctx context.Context, scope driver.Scope) (map[string]driver.Status, error) {
	r, err := d.in(ctx, scope)
	if err != nil {
		return nil, err
	}
	found := map[string]driver.Status{}
	for _, trouble := range troubles {
		pages := ec2.NewDescribeInstanceStatusPaginator(r.api, &ec2.DescribeInstanceStatusInput{
			MaxResults: aws.Int32(pageSize), Filters: []types.Filter{trouble},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx, once)
			if err != nil {
				return nil, classify("DescribeInstanceStatus", err)
			}
			for _, s := range page.InstanceStatuses {
				id := providerID(aws.ToString(s.AvailabilityZone), aws.ToString(s.InstanceId))
				found[id] = driver.Status{Impaired: impairments(s), Scheduled: scheduled(s.Events)}
			}
		}
	}
	return found, nil
}

// impairments names what is wrong with an instance, in a stable order and without what changes each time.
func impairments(s types.InstanceStatus) string {
	var wrong []string
	for _, check := range []struct {
		name    string
		summary *types.InstanceStatusSummary
	}{{"instance status check", s.InstanceStatus}, {"system status check", s.SystemStatus}} {
		if check.summary != nil && check.summary.Status == types.SummaryStatusImpaired {
			wrong = append(wrong, check.name)
		}
	}
	if s.AttachedEbsStatus != nil && s.AttachedEbsStatus.Status == types.SummaryStatusImpaired {
		wrong = append(wrong, "attached EBS status check")
	}
	wrong = append(wrong, due(s.Events, func(code types.EventCode) bool { return slices.Contains(endingEvents, code) })...)
	return strings.Join(wrong, ", ")
}

// scheduled names the events that EC2 has scheduled for an instance.
func scheduled(events []types.InstanceStatusEvent) string {
	return strings.Join(due(events, func(types.EventCode) bool { return true }), ", ")
}

// due describes the events of some kinds that are not over, in an order of its own: EC2 promises none. It keeps those that are over for a
// while, with the outcome in brackets before the description.
func due(events []types.InstanceStatusEvent, wanted func(types.EventCode) bool) []string {
	var found []string
	for _, e := range events {
		if wanted(e.Code) && !strings.HasPrefix(aws.ToString(e.Description), "[") {
			found = append(found, describeEvent(e))
		}
	}
	slices.Sort(found)
	return found
}

func describeEvent(e types.InstanceStatusEvent) string {
	return string(e.Code) + " scheduled for " + aws.ToTime(e.NotBefore).UTC().Format(time.RFC3339)
}
