package behaviour

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/lease"
	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/conformance/timeouts"
	"millwright.dev/contracts/version"
)

// LabelRun is on everything that a run of the suite has created; its value is the run's ID.
const LabelRun = lease.Label

// Env is what cases work with: a management cluster, and a kind of a provider under one version of the contract.
type Env struct {
	// Client reads from the API server, not from a cache.
	Client client.WithWatch
	// Namespace is where everything is created.
	Namespace string
	// Run is the ID of the run.
	Run string
	// Contract is the version by which the provider's objects are read and written, and Kind the kind that is verified.
	Contract version.Contract
	Kind     schema.GroupVersionKind
	// Sample is what objects are created from.
	Sample *Sample
	// Timeouts are how long the cases wait.
	Timeouts timeouts.Timeouts
	// Probe is the infrastructure's view; nil if there is none.
	Probe probe.Probe
	// Restart restarts the provider; nil if that cannot be done.
	Restart func(ctx context.Context) error
	// Log receives the progress of the run in readable form.
	Log io.Writer

	// planted are the secrets of the sample.
	planted  []string
	recorder *recorder
	names    *atomic.Int64
	logging  *sync.Mutex
}

// name returns a unique name. All are of equal length, so that none is part of another.
func (e *Env) name() string { return fmt.Sprintf("%s%03d", prefix(e.Run), e.names.Add(1)) }

// prefix is the prefix of the names of a run.
func prefix(run string) string { return "cf-" + run + "-" }

func (e *Env) logf(format string, args ...any) {
	e.logging.Lock()
	defer e.logging.Unlock()
	fmt.Fprintf(e.Log, format+"\n", args...)
}

// own marks an object as created by the run.
func (e *Env) own(object client.Object) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelRun] = e.Run
	object.SetLabels(labels)
}
