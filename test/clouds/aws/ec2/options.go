package ec2

import (
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/simulator"
)

// Options are the settings of a simulated account in one region. The zero value is a usable account
// in us-east-1 that answers at once.
type Options struct {
	// Region is us-east-1 when empty.
	Region string
	// AccountID owns everything; 000000000000 when empty.
	AccountID string
	// AccessKeyIDs are the accepted identities; all of them when empty.
	AccessKeyIDs []string
	// Delays of the account. Forget is one hour when zero, as EC2's documentation says of terminated
	// instances; the others are really zero.
	Delays simapi.Delays
	// Throttles limits requests by action; "*" is the bucket of each action not named.
	Throttles map[string]Throttle
	// Catalog is what exists in the account beforehand; DefaultCatalog when nil.
	Catalog *Catalog
	// Clock drives every delay; the real one when nil.
	Clock clock.WithDelayedExecution
	// Seed makes the generated IDs the same in each run; they are random when zero.
	Seed uint64
	// Latency is how long every answer takes at least, in real time whatever the Clock; 3 ms when zero, no
	// time when negative. Without it an answer may arrive before the client's HTTP transport has seen the
	// end of its own request: the SDK closes the request's body by then, and the transport takes that for a
	// failed write and drops the connection. No network is fast enough for that.
	Latency time.Duration
	// MetadataTagsByDefault is the account's setting: launches that do not say otherwise have their tags in the metadata.
	MetadataTagsByDefault bool
	// Machines boots instances; none boot when nil.
	Machines simulator.Machines
}

// Throttle is a token bucket of requests, see
// https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html.
type Throttle = simulator.Throttle

// DefaultThrottles are the buckets that the documentation gives for the actions simulated here.
func DefaultThrottles() map[string]Throttle {
	return map[string]Throttle{
		"RunInstances":       {Burst: 5, RefillPerSecond: 2},
		"TerminateInstances": {Burst: 100, RefillPerSecond: 5},
		"CreateTags":         {Burst: 100, RefillPerSecond: 10},
		"DeleteTags":         {Burst: 100, RefillPerSecond: 10},
		"*":                  {Burst: 100, RefillPerSecond: 20},
	}
}

func (o Options) withDefaults() Options {
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if o.AccountID == "" {
		o.AccountID = "000000000000"
	}
	if o.Latency == 0 {
		o.Latency = 3 * time.Millisecond
	}
	if o.Delays.Forget == 0 {
		o.Delays.Forget = time.Hour
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Catalog == nil {
		o.Catalog = DefaultCatalog(o.Region)
	}
	return o
}
