package drain

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// maxParallelEvictions bounds the evictions under way at once for one Node.
	maxParallelEvictions = 10
	// qps and burst limit the requests to one target cluster, apart from the limits of Request.Config, so that a thousand
	// drains do not starve anything else.
	qps, burst = 500, 1000
	// requestTimeout bounds each request but lists and watches.
	requestTimeout = 30 * time.Second
	// forceTimeout is how long a forced drain tries to delete pods and VolumeAttachments, as with MCM.
	forceTimeout = time.Minute
	// DefaultDetachTimeout is how long the volumes of an evicted pod may take to be detached, after its grace
	// period, until the next pod with volumes is evicted all the same. MCM: --machine-pv-detach-timeout.
	DefaultDetachTimeout = 2 * time.Minute
	// DefaultReattachTimeout is how long they may take to be attached to another Node. MCM:
	// --machine-pv-reattach-timeout.
	DefaultReattachTimeout = 90 * time.Second
)

// Options configures a Drainer. The zero value of each field means its default.
type Options struct {
	// Notify is called when the drain with this key has changed since the last Step: at once when the
	// last pod is gone and when the first eviction is refused, and at most every ProgressInterval for all
	// else. It must neither block nor call the Drainer; adding to a work queue is right.
	Notify func(key types.NamespacedName)
	// Clock is the time; the real one by default.
	Clock clock.WithDelayedExecution
	// MinRetry and MaxRetry bound the delay after a refused or failed eviction, which doubles at each
	// attempt and is lengthened by up to a tenth at random; 2 s, and 20 s as with MCM and Cluster API.
	MinRetry, MaxRetry time.Duration
	// ProgressInterval is the shortest time between two notifications of a drain that continues without
	// anything to do; 10 s.
	ProgressInterval time.Duration
	// DetachTimeout and ReattachTimeout bound how long a pod with volumes waits for those of the pod before it;
	// DefaultDetachTimeout, DefaultReattachTimeout.
	DetachTimeout, ReattachTimeout time.Duration
	// ReturnInterval is how long a pod that has come to the cordoned Node is left alone before it is evicted; 20 s, after
	// which Cluster API and MCM retry. Pods that tolerate the cordon would else come back as fast as they are evicted.
	ReturnInterval time.Duration
}

// withDefaults fills in what is not set.
func (o Options) withDefaults() Options {
	if o.Notify == nil {
		o.Notify = func(types.NamespacedName) {}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.MinRetry = cmp.Or(o.MinRetry, 2*time.Second)
	o.MaxRetry = cmp.Or(o.MaxRetry, 20*time.Second)
	o.ProgressInterval = cmp.Or(o.ProgressInterval, 10*time.Second)
	o.DetachTimeout = cmp.Or(o.DetachTimeout, DefaultDetachTimeout)
	o.ReattachTimeout = cmp.Or(o.ReattachTimeout, DefaultReattachTimeout)
	o.ReturnInterval = cmp.Or(o.ReturnInterval, 20*time.Second)
	return o
}

// Mode is how far a drain goes.
type Mode string

const (
	// Normal cordons the Node and evicts its pods.
	Normal Mode = ""
	// Observe neither cordons nor evicts; it only observes which volumes are attached to the Node.
	Observe Mode = "Observe"
	// Forced deletes the pods without grace period, regardless of PodDisruptionBudgets, and is done after
	// a minute in any case. DaemonSets' pods, static ones and those that a label or a rule skips stay. Volumes
	// are left alone, unless Request.ForceDetach is set.
	Forced Mode = "Forced"
	// Detach deletes the VolumeAttachments of the Node and looks at nothing else, for at most a minute. It is
	// for a Node whose machine does not exist any more: nothing on it can write to the volumes.
	Detach Mode = "Detach"
)

// Request is what to drain and how. The drain continues with the last one, so that a change takes
// effect at the Step that has it.
type Request struct {
	// Key names the drain, and is what Notify is called with: the namespace and name of the Machine.
	Key types.NamespacedName
	// Cluster names the target cluster. Drains with the same Cluster share connections.
	Cluster types.NamespacedName
	// Config reaches the target cluster. When the pointer differs from that of the last Step, as after a rotation of the
	// kubeconfig, the connection is recreated. It is not modified.
	Config *rest.Config
	// Node is the Node as last read. Its name, spec.unschedulable and Ready condition are used; a stale
	// one does no harm.
	Node *corev1.Node
	// Mode is how far to go. A change takes effect at once: requests of the mode before are cut off.
	Mode Mode
	// ForceDetach has a forced drain delete the VolumeAttachments of the Node after the pods, as MCM does. The machine
	// still runs then, and may write to a volume that is attached to another Node already.
	ForceDetach bool
	// Rules are the MachineDrainRules that apply, see CompileRules. They decide about pods that no fixed rule
	// (see the README) has decided about.
	Rules *Rules
}
