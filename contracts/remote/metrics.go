package remote

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// maxMeasured is how many target clusters have metrics of their own: those with the most requests that wait or timed out.
// Any user with the right to can create Clusters, so the number of metrics must be bounded.
const maxMeasured = 100

var (
	requestsDesc = prometheus.NewDesc("millwright_target_requests",
		"Number of requests to a target cluster that are under way (sent) or wait for their turn (waiting), by verb. "+
			"Only target clusters that have some, the 100 with the most.", []string{"cluster", "verb", "state"}, nil)
	timeoutsDesc = prometheus.NewDesc("millwright_target_request_timeouts_total",
		"Number of requests to a target cluster that were not answered in time, by verb, since it was connected. "+
			"Only target clusters that have some, the 100 with the most.", []string{"cluster", "verb"}, nil)
	clustersDesc = prometheus.NewDesc("millwright_target_clusters",
		"Number of target clusters by state of the connection: connected, disconnected, or unanswered (it answers probes and no requests).",
		[]string{"state"}, nil)
)

// collected has the Connections of this process, and returns their metrics. There is one but in tests.
var collected = &collector{connections: map[*Connections]bool{}}

func init() { metrics.Registry.MustRegister(collected) }

type collector struct {
	mu          sync.Mutex
	connections map[*Connections]bool
}

func (c *collector) add(connections *Connections) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connections[connections] = true
}

func (c *collector) remove(connections *Connections) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.connections, connections)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{requestsDesc, timeoutsDesc, clustersDesc} {
		to <- desc
	}
}

// Queue is an Attachment that queues requests to its target cluster. It is in the metrics.
type Queue interface {
	// Load returns how many requests there are, for each verb.
	Load() []Load
	// Trouble describes which requests the API server does not answer, or refuses, although it answers probes; "" while it answers all.
	Trouble() string
}

// Load is how many requests with one verb there are to one target cluster.
type Load struct {
	Verb string
	// Sent are under way, Waiting wait for their turn. TimedOut counts those that were not answered in time since it was connected.
	Sent, Waiting int
	TimedOut      uint64
}

// series is the load of one target cluster.
type series struct {
	cluster string
	Load
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	states := map[string]int{"connected": 0, "disconnected": 0, "unanswered": 0}
	var all []series
	for _, connection := range c.all(states) {
		queue, ok := connection.attachment.(Queue)
		if !ok {
			continue
		}
		for _, load := range queue.Load() {
			if load.Sent+load.Waiting > 0 || load.TimedOut > 0 {
				all = append(all, series{connection.name(), load})
			}
		}
	}
	for state, count := range states {
		to <- prometheus.MustNewConstMetric(clustersDesc, prometheus.GaugeValue, float64(count), state)
	}
	for _, s := range measured(all) {
		to <- prometheus.MustNewConstMetric(requestsDesc, prometheus.GaugeValue, float64(s.Sent), s.cluster, s.Verb, "sent")
		to <- prometheus.MustNewConstMetric(requestsDesc, prometheus.GaugeValue, float64(s.Waiting), s.cluster, s.Verb, "waiting")
		to <- prometheus.MustNewConstMetric(timeoutsDesc, prometheus.CounterValue, float64(s.TimedOut), s.cluster, s.Verb)
	}
}

// all returns the connections that are up, and counts the states of all.
func (c *collector) all(states map[string]int) []*Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*Connection
	for connections := range c.connections {
		for _, runner := range connections.known() {
			connection, _ := runner.state()
			switch {
			case connection == nil:
				states["disconnected"]++
				continue
			case troubled(connection):
				states["unanswered"]++
			default:
				states["connected"]++
			}
			found = append(found, connection)
		}
	}
	return found
}

func troubled(connection *Connection) bool {
	queue, ok := connection.attachment.(Queue)
	return ok && queue.Trouble() != ""
}

// measured returns the exported series: of each cluster and verb one, the worst first, a bounded number.
func measured(all []series) []series {
	slices.SortFunc(all, func(a, b series) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.TimedOut, a.TimedOut), cmp.Compare(b.Sent, a.Sent),
			cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.Verb, b.Verb))
	})
	type key struct{ cluster, verb string }
	known, clusters := map[key]bool{}, map[string]bool{}
	return slices.DeleteFunc(all, func(s series) bool {
		k := key{s.cluster, s.Verb}
		if known[k] || !clusters[s.cluster] && len(clusters) >= maxMeasured {
			return true
		}
		known[k], clusters[s.cluster] = true, true
		return false
	})
}
