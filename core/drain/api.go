package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Defaults of Options.
const (
	// DefaultMaxParallelEvictions is how many evictions of one Node are under way at once.
	DefaultMaxParallelEvictions = 10
	// DefaultMinRetry is the delay before a refused eviction is tried for the second time.
	DefaultMinRetry = 2 * time.Second
	// DefaultMaxRetry is what the delay grows to. MCM retries every 20 s, Cluster API too.
	DefaultMaxRetry = 20 * time.Second
	// DefaultProgressInterval is how often a drain that merely goes on is reported.
	DefaultProgressInterval = 10 * time.Second
	// DefaultQPS is the rate of requests to one target cluster.
	DefaultQPS = 200
	// DefaultBurst is how many requests to one target cluster may exceed the rate for a moment.
	DefaultBurst = 400
	// DefaultRequestTimeout bounds each request but watches.
	DefaultRequestTimeout = 30 * time.Second
)

// Options configures a Drainer. The zero value of each field means its default.
type Options struct {
	// Notify is called when there is news of the drain with this key since the last Step: at once when the
	// last pod has gone and when the first eviction is refused, and at most every ProgressInterval for all
	// else. It must neither block nor call the Drainer; adding to a work queue is right.
	Notify func(key types.NamespacedName)
	// Clock tells the time; the real one by default.
	Clock clock.WithDelayedExecution
	// MaxParallelEvictions bounds the evictions under way at once for one Node; DefaultMaxParallelEvictions.
	MaxParallelEvictions int
	// MinRetry and MaxRetry bound the delay after a refused or failed eviction, which doubles at each
	// attempt and is lengthened by up to a tenth at random; DefaultMinRetry, DefaultMaxRetry.
	MinRetry, MaxRetry time.Duration
	// ProgressInterval is the shortest time between two notifications of a drain that goes on without
	// anything to do; DefaultProgressInterval.
	ProgressInterval time.Duration
	// QPS and Burst limit the requests to each target cluster; DefaultQPS, DefaultBurst. They are counted
	// apart from those of Request.Config, so that a thousand drains do not starve anything else.
	QPS   float32
	Burst int
}

// Request says what to drain and how. The last one is what the drain goes on under, so that a change takes
// effect at the Step that brings it.
type Request struct {
	// Key names the drain, and is what Notify is called with: the namespace and name of the Machine.
	Key types.NamespacedName
	// Cluster names the target cluster. Drains with the same Cluster share connections.
	Cluster types.NamespacedName
	// Config reaches the target cluster. When its address or credentials differ from those of the last
	// Step, as after a rotation of the kubeconfig, the connection is made anew. It is not modified.
	Config *rest.Config
	// Node is the Node as last read. Its name, spec.unschedulable and Ready condition are used; a stale
	// one does no harm.
	Node *corev1.Node
	// Behaviour decides about pods that no fixed rule (see the README) has decided about, and sets the order
	// of groups. Nil means Drain in order 0 for all. It is the place for MachineDrainRules.
	Behaviour func(*Pod) Decision
	// GracePeriodSeconds replaces the pods' own grace period, when not nil.
	GracePeriodSeconds *int64
}

// Result says how far a drain is. The lists are sorted by namespace and name.
type Result struct {
	// Done means that no pod remains that the drain must wait for.
	Done bool
	// Cordoned means that the Node is unschedulable as far as is known.
	Cordoned bool
	// Listed means that the pods are known; before, all lists are empty.
	Listed bool
	// Evicting are pods whose eviction is due, under way, or granted while the pod does not terminate yet.
	Evicting []PodStatus
	// Terminating are pods with a deletionTimestamp that have not gone yet.
	Terminating []PodStatus
	// Blocked are pods whose eviction was refused or has failed; it is tried again.
	Blocked []PodStatus
	// Completing are pods that may not be evicted and whose completion is awaited.
	Completing []PodStatus
	// Later are pods of later groups, which are left alone until the groups before them have gone.
	Later []PodStatus
	// Skipped counts the pods that stay: of DaemonSets, static ones, those that are labelled so.
	Skipped int
	// Message tells in words for a condition what is awaited and, where someone must act, who and how.
	// It is stable while nothing changes, and empty when Done.
	Message string
	// NextDeadline is when the drain itself tries next, zero when it waits for events alone. There is no
	// need to call Step then: Notify tells when there is news.
	NextDeadline time.Time
}

// PodStatus names a pod of a Result.
type PodStatus struct {
	// Pod is the pod's namespace and name.
	Pod types.NamespacedName
	// PodDisruptionBudget is the name, in the pod's namespace, of the budget that forbids the eviction.
	// Empty when it is something else that does, or when the API server did not say.
	PodDisruptionBudget string
	// Reason says in words why the pod is blocked.
	Reason string
}
