package interruption

import (
	"context"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/pkg/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/providers/aws/apicalls"
)

// SetupWithManager adds a Receiver for each queue to a manager, and the index that they need. act is what they call of a reconciler that
// was added before.
func (o *Options) SetupWithManager(ctx context.Context, mgr ctrl.Manager, name, watchFilter string, act Interrupted) error {
	if len(o.Queues) == 0 {
		return nil
	}
	if o.Action == ActionReport {
		act = nil
	}
	if err := IndexInstances(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	for _, queue := range o.Queues {
		api, err := connect(ctx, queue)
		if err != nil {
			return err
		}
		receiver := &Receiver{
			URL: queue, Queue: api, Client: mgr.GetClient(), Recorder: events.For(mgr, name),
			Clock: clock.RealClock{}, WatchFilter: watchFilter, Interrupted: act,
		}
		if err := mgr.Add(receiver); err != nil {
			return errors.Wrapf(err, "adding the receiver of %s", queue)
		}
	}
	return nil
}

// connect makes the client of a queue's region, by the SDK's default chain. AWS_ENDPOINT_URL_SQS is honoured.
func connect(ctx context.Context, queue string) (API, error) {
	var options []func(*config.LoadOptions) error
	if u, err := url.Parse(queue); err == nil {
		if found := queueRegion.FindStringSubmatch(u.Host); found != nil {
			options = append(options, config.WithRegion(found[1]))
		}
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, errors.Wrapf(err, "loading the AWS configuration for %s", queue)
	}
	if cfg.Region == "" {
		return nil, errors.Errorf("the URL %s names no region: set AWS_REGION", queue)
	}
	return sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.APIOptions = append(slices.Clone(o.APIOptions), apicalls.Measured(apicalls.Classify))
	}), nil
}
