package interruption

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/pkg/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// longPoll is the longest that SQS takes.
	longPoll = 20 * time.Second
	// callTimeout limits a call beyond that.
	callTimeout = 10 * time.Second
	// hidden is for how long a message that is not deleted is not received again.
	hidden = 30 * time.Second
	// batchSize is the largest that SQS takes.
	batchSize = 10
	// idle is the least time between two calls when SQS answers at once and has nothing.
	idle = time.Second
	// longestPause between two calls that fail.
	longestPause = time.Minute
)

// API are the calls of SQS that a Receiver makes.
type API interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// Receiver receives from one queue, which no other program reads. Anyone who may send to the queue may claim anything: what a message says
// is reported, and ends nothing but Machines that Interrupted takes for those to be replaced.
type Receiver struct {
	// URL of the queue.
	URL string
	// Queue makes the calls.
	Queue API
	// Client reads AWSMachines from the cache, by IndexInstances, and patches them.
	Client client.Client
	// Recorder of events.
	Recorder events.EventRecorder
	// Clock for the age of messages and pauses.
	Clock clock.Clock
	// WatchFilter restricts the controller to objects with this value of the watch label; "" is all.
	WatchFilter string
	// Interrupted has the Machine of an instance deleted that EC2 takes back, and returns whether nothing more is to be done; nil if
	// interruptions are only reported. A message is not deleted before that, so that a process that ends loses none.
	Interrupted Interrupted
}

// NeedLeaderElection is true: only the leader takes messages.
func (r *Receiver) NeedLeaderElection() bool { return true }

// Start receives until ctx is done. What fails is tried again with growing pauses: it ends no process, since instances are seen to stop
// without a queue as well.
func (r *Receiver) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("interruption").WithValues("queue", r.URL)
	ctx = ctrl.LoggerInto(ctx, log)
	for failures := 0; ctx.Err() == nil; {
		began := r.Clock.Now()
		some, err := r.receive(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failures++
			log.Error(err, "Interruptions cannot be received; they show only when the instances stop", "failures", failures)
			r.pause(ctx, min(time.Second<<min(failures-1, 10), longestPause))
		default:
			failures = 0
			if !some && r.Clock.Since(began) < idle {
				r.pause(ctx, idle)
			}
		}
	}
	return nil
}

func (r *Receiver) pause(ctx context.Context, d time.Duration) {
	timer := r.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// receive takes messages and deletes those that are done with. It returns whether there were some.
func (r *Receiver) receive(ctx context.Context) (bool, error) {
	callCtx, cancel := context.WithTimeout(ctx, longPoll+callTimeout)
	defer cancel()
	out, err := r.Queue.ReceiveMessage(callCtx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(r.URL), MaxNumberOfMessages: batchSize,
		WaitTimeSeconds: int32(longPoll / time.Second), VisibilityTimeout: int32(hidden / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
	}, once)
	if err != nil {
		if ctx.Err() == nil {
			failed.WithLabelValues(r.URL, "ReceiveMessage").Inc()
		}
		return false, errors.Wrap(err, "ReceiveMessage")
	}
	lastReceived.WithLabelValues(r.URL).Set(float64(r.Clock.Now().Unix()))
	taken := make([]*taking, 0, len(out.Messages))
	for _, m := range out.Messages {
		taken = append(taken, r.take(ctx, aws.ToString(m.Body), sentAt(m)))
	}
	r.record(ctx, taken)
	var done []types.DeleteMessageBatchRequestEntry
	for i, t := range taken {
		received.WithLabelValues(r.URL, t.result).Inc()
		if !slices.Contains(receivedAgain, t.result) {
			done = append(done, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: out.Messages[i].ReceiptHandle})
		}
	}
	r.delete(ctx, done)
	return len(out.Messages) > 0, nil
}

// delete deletes messages. Those that stay are received again, which changes nothing; that they do is no reason to receive others later.
func (r *Receiver) delete(ctx context.Context, done []types.DeleteMessageBatchRequestEntry) {
	if len(done) == 0 {
		return
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := r.Queue.DeleteMessageBatch(callCtx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(r.URL), Entries: done}, once)
	if err == nil && len(out.Failed) > 0 {
		err = errors.Errorf("%d of %d messages: %s", len(out.Failed), len(done), aws.ToString(out.Failed[0].Message))
	}
	if err != nil && ctx.Err() == nil {
		failed.WithLabelValues(r.URL, "DeleteMessageBatch").Inc()
		ctrl.LoggerFrom(ctx).Error(err, "Messages in the interruption queue cannot be deleted; they are received again")
		r.pause(ctx, idle)
	}
}

// sentAt is when the message was sent; zero if SQS does not say.
func sentAt(m types.Message) time.Time {
	ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// once keeps the SDK from repeating a call by itself: the pauses here do.
func once(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }
