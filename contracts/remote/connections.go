package remote

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configures Connections. Zero durations and numbers mean the defaults given.
type Options struct {
	// Secrets reads kubeconfig Secrets live.
	Secrets client.Reader
	// Kubeconfig, if not empty, is a file, or InCluster: then that is the target cluster of all Clusters, and no Secret
	// is looked at.
	Kubeconfig string
	// Scheme knows the kinds that are used in target clusters.
	Scheme *runtime.Scheme
	// UserAgent is the name of the manager in target clusters.
	UserAgent string
	// Attach, if set, prepares what is kept beside each connection. Nothing is to be sent before it runs.
	Attach func(*Connection) (Attachment, error)
	// Probe is what every kubeconfig must allow to list: one object is listed where the version is not public; Nodes.
	Probe Resource
	// QPS and Burst limit the requests to each target cluster.
	QPS   float32
	Burst int
	// Clock is the time; the real one by default.
	Clock clock.Clock
	// RequestTimeout bounds each request but watches; 10 s.
	RequestTimeout time.Duration
	// ProbeInterval is how often the API server is probed (10 s), ProbeTimeout how long its answer may take (5 s), and
	// ProbeFailures how many failures in a row end the connection (5).
	ProbeInterval, ProbeTimeout time.Duration
	ProbeFailures               int
	// KubeconfigInterval is how often the kubeconfig of a connection is read again without a notice that it has changed. When zero, never
	// for a Secret, and once a minute for a file, of which not every change is noticed. It is for managers that may not watch Secrets, see
	// Reconciler.WatchSecrets.
	KubeconfigInterval time.Duration
	// SyncTimeout bounds the wait for an Attachment; 5 min.
	SyncTimeout time.Duration
	// MinRetry and MaxRetry bound the delay between attempts to connect, which doubles; 500 ms and 30 s.
	MinRetry, MaxRetry time.Duration

	// mapper is created once, since that takes longer than all else that a connection needs.
	mapper meta.RESTMapper
	// onPause is called before each pause of a goroutine that keeps a connection, in tests.
	onPause func(end time.Time)
}

// Resource is a cluster-scoped resource.
type Resource struct {
	// Path is that of its list, Name its name in messages.
	Path, Name string
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.RequestTimeout, 10 * time.Second}, {&o.ProbeInterval, 10 * time.Second}, {&o.ProbeTimeout, 5 * time.Second},
		{&o.SyncTimeout, 5 * time.Minute}, {&o.MinRetry, 500 * time.Millisecond}, {&o.MaxRetry, 30 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.ProbeFailures == 0 {
		o.ProbeFailures = 5
	}
	if o.KubeconfigInterval == 0 && o.Kubeconfig != "" && o.Kubeconfig != InCluster {
		// No watch sees that a link above the directory of the file, or the file as a link, leads elsewhere.
		o.KubeconfigInterval = time.Minute
	}
	if o.Probe.Path == "" {
		o.Probe = Resource{Path: "/api/v1/nodes", Name: "Nodes"}
	}
	o.mapper = builtIn(o.Scheme)
	return o
}

// dialBackoff returns the delays between attempts to connect, with jitter so that clusters behind one broken network do not
// try in step.
func (o Options) dialBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: o.MinRetry, Factor: 2, Jitter: 0.1, Steps: 20, Cap: o.MaxRetry}
}

// Connections are the connections to all target clusters.
type Connections struct {
	options Options
	started time.Time

	mutex sync.Mutex
	// runners are the connections by key, see keyOf.
	runners map[types.NamespacedName]*runner
	group   wait.Group
	// closed is set by Close: workers that reconcile until the manager has ended begin no further connection.
	closed bool

	subscribers    sync.RWMutex
	onConnectivity []func(types.NamespacedName)
	onUnanswered   []func(types.NamespacedName)
}

// New returns Connections without any connection.
func New(options Options) *Connections {
	options = options.withDefaults()
	c := &Connections{options: options, started: options.Clock.Now(), runners: map[types.NamespacedName]*runner{}}
	collected.add(c)
	return c
}

// known returns the runners of all connections.
func (c *Connections) known() []*runner {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Collect(maps.Values(c.runners))
}

// OnConnectivity registers f to be called when a connection is established or lost, and when the reason why there is none changes.
// f must not block.
func (c *Connections) OnConnectivity(f func(cluster types.NamespacedName)) {
	c.subscribers.Lock()
	defer c.subscribers.Unlock()
	c.onConnectivity = append(c.onConnectivity, f)
}

// keyOf names the connection that a Cluster uses: its own, or the one that all share.
func (c *Connections) keyOf(cluster types.NamespacedName) types.NamespacedName {
	if c.options.Kubeconfig != "" {
		return types.NamespacedName{}
	}
	return cluster
}

// find returns the runner of the connection of a Cluster; nil while it is not to be connected.
func (c *Connections) find(cluster types.NamespacedName) *runner {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := c.runners[c.keyOf(cluster)]
	if found == nil || !found.clusters[cluster] {
		return nil
	}
	return found
}

// Get returns the connection to a cluster, or a *NotConnectedError. It never blocks.
func (c *Connections) Get(cluster types.NamespacedName) (*Connection, error) {
	found := c.find(cluster)
	if found == nil {
		return nil, &NotConnectedError{
			Reason:      NotDialledYet,
			Message:     "no connection to the target cluster has been tried yet",
			LastSuccess: c.started,
		}
	}
	connection, failure := found.state()
	if failure != nil {
		return nil, failure
	}
	return connection, nil
}

// KubeconfigError returns why the kubeconfig of a cluster, as it is now, cannot be used, while a connection that was established
// with an earlier one is kept; "" when it can be used.
func (c *Connections) KubeconfigError(cluster types.NamespacedName) string {
	found := c.find(cluster)
	if found == nil {
		return ""
	}
	return found.kubeconfigError()
}

// LastSuccess returns when the API server of a cluster answered last; the start of this process when it never has.
func (c *Connections) LastSuccess(cluster types.NamespacedName) time.Time {
	found := c.find(cluster)
	if found == nil {
		return c.started
	}
	return found.lastAnswer()
}

// Ensure begins to connect to a cluster, or rechecks the kubeconfig of a known one. After Close it does nothing.
func (c *Connections) Ensure(ctx context.Context, cluster types.NamespacedName) {
	if c.join(ctx, cluster) {
		// The connection may be up already.
		c.notify(cluster)
	}
}

// join has a Cluster use its connection, and reports whether other Clusters used that before.
func (c *Connections) join(ctx context.Context, cluster types.NamespacedName) (joined bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	key := c.keyOf(cluster)
	if found := c.runners[key]; found != nil {
		if joined = !found.clusters[cluster]; joined {
			found.clusters[cluster] = true
		} else {
			found.poke()
		}
		return joined
	}
	if c.closed {
		return false
	}
	// The connection outlives the reconcile that asked for it, and ends with Remove or Close.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	created := &runner{
		key: key, options: c.options, connections: c, cancel: cancel, look: make(chan struct{}, 1), suspected: make(chan struct{}, 1),
		lastSuccess: c.started,
		clusters:    map[types.NamespacedName]bool{cluster: true},
		failure:     &NotConnectedError{Reason: NotDialledYet, Message: "the connection to the target cluster is being established"},
	}
	c.runners[key] = created
	log := ctrl.Log.WithName("remote")
	if key == cluster {
		log = log.WithValues("Cluster", cluster)
	}
	c.group.StartWithContext(ctrl.LoggerInto(ctx, log), created.run)
	return false
}

// Remove ends the connection to a cluster, unless other Clusters use it. It returns at once.
func (c *Connections) Remove(cluster types.NamespacedName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := c.runners[c.keyOf(cluster)]
	if found == nil {
		return
	}
	delete(found.clusters, cluster)
	if len(found.clusters) == 0 {
		found.cancel()
		delete(c.runners, found.key)
	}
}

// Close ends all connections permanently and waits until their goroutines have ended.
func (c *Connections) Close() {
	c.mutex.Lock()
	c.closed = true
	for key, found := range c.runners {
		found.cancel()
		delete(c.runners, key)
	}
	c.mutex.Unlock()
	c.group.Wait()
	collected.remove(c)
}

// clustersOf returns the Clusters that use a connection.
func (c *Connections) clustersOf(r *runner) []types.NamespacedName {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Collect(maps.Keys(r.clusters))
}

// connectivityChanged calls the subscribers for each Cluster of a connection.
func (c *Connections) connectivityChanged(r *runner) {
	for _, cluster := range c.clustersOf(r) {
		c.notify(cluster)
	}
}

func (c *Connections) notify(cluster types.NamespacedName) {
	c.subscribers.RLock()
	defer c.subscribers.RUnlock()
	for _, f := range c.onConnectivity {
		f(cluster)
	}
}
