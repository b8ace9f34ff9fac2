package conformance

import (
	"context"
	"io"

	"k8s.io/client-go/rest"

	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/conformance/report"
)

// RunOptions are what a suite that needs a cluster is given.
type RunOptions struct {
	Selection Selection
	// Sample is a stream of YAML documents: the objects from which the suite makes those that it has reconciled.
	Sample []byte
	// Timeouts is a YAML document of the suite's own kind; its defaults if empty.
	Timeouts []byte
	// Namespace to work in; the suite makes one of its own if it is empty.
	Namespace string
	// Probe is the infrastructure's view; rules that need it are skipped if it is nil.
	Probe probe.Probe
	// Restart ends the provider's process at once and starts it again; rules about restarts are skipped if it is nil.
	Restart func(ctx context.Context) error
	// TargetKubeconfig is how a core reaches the management cluster as the workload cluster, where that is another way than the
	// suite's: an address inside the cluster, or credentials without a program. Of the suite for cores alone.
	TargetKubeconfig []byte
	// Parallel is how many cases run at once; 8 if it is 0.
	Parallel int
	// Log receives the progress of the run, for people.
	Log io.Writer
}

// Suite runs the cases of a profile against a management cluster and returns a result for each rule. With an error it returns the
// results that it has so far; it cleans up after itself, also when the context ends.
type Suite func(ctx context.Context, config *rest.Config, options RunOptions) ([]report.Result, error)
