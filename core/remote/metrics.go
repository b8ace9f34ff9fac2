package remote

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// maxMeasured is how many target clusters have metrics of their own: those with the most requests that wait or timed out.
// Clusters can be created by whoever may, so there must not be metrics without end.
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

// collected are the Connections of this process, and hands out their metrics. There is one but in tests.
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

// series is what is measured of the requests with one verb to one target cluster.
type series struct {
	cluster, verb    string
	running, waiting int
	timedOut         uint64
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	states := map[string]int{"connected": 0, "disconnected": 0, "unanswered": 0}
	var all []series
	for _, connection := range c.all(states) {
		for _, l := range []*lane{&connection.patches, &connection.deletes} {
			s := series{cluster: connection.name(), verb: l.verb}
			if s.running, s.waiting, s.timedOut = l.load(); s.running+s.waiting > 0 || s.timedOut > 0 {
				all = append(all, s)
			}
		}
	}
	for state, count := range states {
		to <- prometheus.MustNewConstMetric(clustersDesc, prometheus.GaugeValue, float64(count), state)
	}
	for _, s := range measured(all) {
		to <- prometheus.MustNewConstMetric(requestsDesc, prometheus.GaugeValue, float64(s.running), s.cluster, s.verb, "sent")
		to <- prometheus.MustNewConstMetric(requestsDesc, prometheus.GaugeValue, float64(s.waiting), s.cluster, s.verb, "waiting")
		to <- prometheus.MustNewConstMetric(timeoutsDesc, prometheus.CounterValue, float64(s.timedOut), s.cluster, s.verb)
	}
}

// all returns the connections that stand, and counts the states of all.
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
			case connection.Trouble() != "":
				states["unanswered"]++
			default:
				states["connected"]++
			}
			found = append(found, connection)
		}
	}
	return found
}

// measured returns the series that are handed out: of each cluster and verb one, the worst first, a bounded number.
func measured(all []series) []series {
	slices.SortFunc(all, func(a, b series) int {
		return cmp.Or(cmp.Compare(b.waiting, a.waiting), cmp.Compare(b.timedOut, a.timedOut), cmp.Compare(b.running, a.running),
			cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.verb, b.verb))
	})
	type key struct{ cluster, verb string }
	known, clusters := map[key]bool{}, map[string]bool{}
	return slices.DeleteFunc(all, func(s series) bool {
		k := key{s.cluster, s.verb}
		if known[k] || !clusters[s.cluster] && len(clusters) >= maxMeasured {
			return true
		}
		known[k], clusters[s.cluster] = true, true
		return false
	})
}
