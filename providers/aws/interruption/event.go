// Package interruption receives from a queue of Amazon SQS what EC2 announces by EventBridge: that it takes a spot instance back, and
// that it is likely to. It writes that to the AWSMachine of the instance as a notice, which the reconciler reports, and notifies the
// reconciler of interruptions, which has the Machine deleted.
package interruption

import (
	"encoding/json"
	"regexp"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver/inframachine"
)

// maxBody is how long a message may be. Those of EC2 have a few hundred bytes.
const maxBody = 16 << 10

// What EventBridge calls the events that are handled, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html and
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html.
const (
	sourceEC2           = "aws.ec2"
	detailInterruption  = "EC2 Spot Instance Interruption Warning"
	detailRebalance     = "EC2 Instance Rebalance Recommendation"
	interruptionWarning = 2 * time.Minute // from the event to the interruption
)

// event is what a message announces.
type event struct {
	// instance ID and region.
	instance, region string
	kind             inframachine.NoticeKind
	at, deadline     time.Time
}

var instancePattern = regexp.MustCompile(`^i-[0-9a-f]{8,32}$`)

// errIgnored is the error of an event that is none of those that are handled.
var errIgnored = errors.New("the event is of another kind")

// parse reads a message. Its errors contain nothing of the body: anyone may have sent it.
func parse(body string) (event, error) {
	if len(body) > maxBody {
		return event{}, errors.Errorf("the message has %d bytes, more than %d", len(body), maxBody)
	}
	var envelope struct {
		Source     string    `json:"source"`
		DetailType string    `json:"detail-type"`
		Region     string    `json:"region"`
		Time       time.Time `json:"time"`
		Detail     struct {
			InstanceID string `json:"instance-id"`
		} `json:"detail"`
	}
	if err := json.Unmarshal([]byte(body), &envelope); err != nil {
		return event{}, errors.New("the message is not an EventBridge event in JSON")
	}
	e := event{instance: envelope.Detail.InstanceID, region: envelope.Region, at: envelope.Time}
	switch {
	case envelope.Source != sourceEC2:
		return event{}, errIgnored
	case envelope.DetailType == detailInterruption:
		e.kind, e.deadline = inframachine.NoticeInterruption, e.at.Add(interruptionWarning)
	case envelope.DetailType == detailRebalance:
		e.kind = inframachine.NoticeRebalance
	default:
		return event{}, errIgnored
	}
	if !instancePattern.MatchString(e.instance) || e.region == "" || e.at.IsZero() {
		return event{}, errors.New("the event names no instance, region or time")
	}
	return e, nil
}
