package conformance

import (
	"context"
	"io"

	"k8s.io/client-go/rest"

	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/conformance/report"
)

// RunOptions are the inputs of a suite that needs a cluster.
type RunOptions struct {
	Selection Selection
	// Sample is a stream of YAML documents: the objects from which the suite creates those that it tests with.
	Sample []byte
	// Timeouts is a YAML document of the suite's own kind; its defaults if empty.
	Timeouts []byte
	// Namespace to work in; the suite creates one if it is empty.
	Namespace string
	// Probe is the infrastructure's view; rules that need it are skipped if it is nil.
	Probe probe.Probe
	// Restart kills the provider's process and starts it again; rules about restarts are skipped if it is nil.
	Restart func(ctx context.Context) error
	// TargetKubeconfig is how a core reaches the management cluster as its workload cluster, where that differs from the
	// suite's way: an address inside the cluster, or credentials without a program. Only for the suite for cores.
	TargetKubeconfig []byte
	// Parallel is how many cases run at once; 8 if it is 0.
	Parallel int
	// Log receives the progress of the run in readable form.
	Log io.Writer
}

// Suite runs the cases of a profile against a management cluster and returns a result for each rule. With an error it returns the
// results so far. It cleans up after itself, also when the context ends.
type Suite func(ctx context.Context, config *rest.Config, options RunOptions) ([]report.Result, error)
