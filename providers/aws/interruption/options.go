package interruption

import (
	"net/url"
	"regexp"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver/inframachine"
)

// Options are the flags.
type Options struct {
	// Queues are the URLs of the queues.
	Queues []string
	// Action is what is done about an interruption warning: ActionDelete or ActionReport. Default: ActionDelete.
	Action string
}

// Actions.
const (
	// ActionDelete has the Machine deleted if a MachineSet controls it.
	ActionDelete = "delete"
	// ActionReport reports it in conditions and events alone.
	ActionReport = "report"
)

// Interrupted is Reconciler.Interrupted of the kit.
type Interrupted func(client.Object, inframachine.Notice) bool

// AddFlags adds the flags to fs.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.Queues, "interruption-queue", nil,
		"URL of a queue of Amazon SQS to which EventBridge sends interruption warnings and rebalance recommendations of EC2; "+
			"one for each region, separated by commas, read by no other program, with the credentials of the process; not with --require-identity.")
	fs.StringVar(&o.Action, "interruption-action", ActionDelete,
		"What to do when a queue announces that EC2 takes a spot instance back: delete (its Machine, if a MachineSet controls that, "+
			"so that the Node is drained while there is time, and replaced) or report.")
}

// queuePath is the path of a queue's URL: account and name.
var queuePath = regexp.MustCompile(`^/[0-9]{12}/[A-Za-z0-9_-]{1,80}$`)

// queueRegion is the region in the host of a queue's URL.
var queueRegion = regexp.MustCompile(`(?:^|\.)sqs\.([a-z0-9-]+)\.`)

// Validate refuses URLs that are none of standard queues, unknown actions, and queues where the provider is to use no credentials but those
// of identities: queues are read with the credentials of the process.
func (o *Options) Validate(identitiesRequired bool) error {
	if len(o.Queues) > 0 && identitiesRequired {
		return errors.New("--interruption-queue is read with the credentials of the process, which --require-identity leaves unused: " +
			"give one of the two")
	}
	for _, text := range o.Queues {
		u, err := url.Parse(text)
		if err != nil || !isQueue(u) {
			return errors.Errorf("--interruption-queue is %q, which is not the URL of a standard queue: "+
				"give it as https://sqs.<region>.amazonaws.com/<account>/<name>", text)
		}
	}
	if o.Action != ActionDelete && o.Action != ActionReport {
		return errors.Errorf("--interruption-action is %q: give %s or %s", o.Action, ActionDelete, ActionReport)
	}
	return nil
}

func isQueue(u *url.URL) bool {
	web := u.Scheme == "https" || u.Scheme == "http"
	return web && u.Host != "" && u.User == nil && u.RawQuery == "" && queuePath.MatchString(u.Path)
}
