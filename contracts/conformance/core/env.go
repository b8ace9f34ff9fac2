package core

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/timeouts"
	"millwright.dev/contracts/version"
)

// Env is what cases work with: a management cluster with a core, and the version of the contract by which the suite plays providers.
type Env struct {
	// Client reads from the API server, not from a cache.
	Client client.WithWatch
	// Config is how the suite, and by kubeconfigs the core, reaches the cluster.
	Config *rest.Config
	// TargetKubeconfig is how the core reaches the cluster; Config if it is empty.
	TargetKubeconfig []byte
	// Namespace is where namespaced objects are created.
	Namespace string
	// Run is the ID of the run.
	Run      string
	Contract version.Contract
	Timeouts timeouts.Timeouts
	// Log receives the progress of the run in readable form.
	Log io.Writer

	names   *atomic.Int64
	logging *sync.Mutex
}

// prefix is the prefix of the names of a run.
func (e *Env) prefix() string { return "cc-" + e.Run + "-" }

// name returns a unique name. All are of equal length, so that none is part of another.
func (e *Env) name() string { return fmt.Sprintf("%s%03d", e.prefix(), e.names.Add(1)) }

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
	labels[behaviour.LabelRun] = e.Run
	object.SetLabels(labels)
}
