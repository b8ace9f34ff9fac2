package interruption

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// What becomes of a message.
const (
	resultRecorded  = "recorded"  // written to an AWSMachine
	resultKnown     = "known"     // written before
	resultUnknown   = "unknown"   // no AWSMachine has the instance
	resultOnDemand  = "ondemand"  // an interruption of an instance that is none of spot
	resultIgnored   = "ignored"   // an event of another kind
	resultStale     = "stale"     // too old, or from the future
	resultMalformed = "malformed" // no event
	resultRefused   = "refused"   // the API server does not take it; received again
	resultWaiting   = "waiting"   // no AWSMachine has the instance yet; received again
	resultPending   = "pending"   // the Machine is still to be deleted; received again
)

// receivedAgain are the results with which a message stays in the queue, the strongest first.
var receivedAgain = []string{resultRefused, resultPending, resultWaiting}

var (
	received = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_interruption_messages_total",
		Help: "Number of messages received from an interruption queue, by what became of them: recorded, known (before), unknown (no machine has the instance), ondemand, ignored (another kind of event), stale, malformed, or received again: refused (by the API server), waiting (for a machine with the instance), pending (until the Machine is deleted).",
	}, []string{"queue", "result"})

	failed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_interruption_queue_failures_total",
		Help: "Number of failed calls to an interruption queue. While they fail, interruptions show only when the instances stop.",
	}, []string{"queue", "action"})

	lastReceived = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "millwright_interruption_last_receive_timestamp_seconds",
		Help: "Unix time of the latest answer of an interruption queue, with messages or without.",
	}, []string{"queue"})
)

func init() { metrics.Registry.MustRegister(received, failed, lastReceived) }
