package measure

import (
	"io"
	"maps"

	"github.com/pkg/errors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The metrics that are read; both cores export them through controller-runtime and the ClusterCache.
const (
	requestsMetric   = "rest_client_requests_total"
	reconcilesMetric = "controller_runtime_reconcile_total"
	probesMetric     = "capi_cluster_cache_healthchecks_total"
	connectionMetric = "capi_cluster_cache_connection_up"
)

// conflict is the status code of a write that lost against another one.
const conflict = "409"

// ProbeController is the controller that runs the health probes of target clusters. Its reconciles
// are those probes.
const ProbeController = "clustercache"

// Counters are a core's own counts since its process began, or between two samples.
type Counters struct {
	// Requests are the API requests by HTTP method, the health probes of target clusters included.
	Requests map[string]int
	// Conflicts are the requests among them that were answered with 409.
	Conflicts int
	// Probes are the health probes of target clusters.
	Probes int
	// Reconciles are the reconciles by controller.
	Reconciles map[string]int
	// Connected says whether the core holds a connection to each target cluster that it knows; false
	// when it knows none.
	Connected bool
}

// ParseCounters reads a metrics page in Prometheus' text format. A metric that is missing counts as
// zero: a core exports a counter only once it has counted.
func ParseCounters(page io.Reader) (Counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return Counters{}, errors.Wrap(err, "parsing metrics")
	}
	c := Counters{Requests: map[string]int{}, Reconciles: map[string]int{}}
	for _, m := range families[requestsMetric].GetMetric() {
		n := int(m.GetCounter().GetValue())
		c.Requests[label(m, "method")] += n
		if label(m, "code") == conflict {
			c.Conflicts += n
		}
	}
	for _, m := range families[reconcilesMetric].GetMetric() {
		c.Reconciles[label(m, "controller")] += int(m.GetCounter().GetValue())
	}
	for _, m := range families[probesMetric].GetMetric() {
		c.Probes += int(m.GetCounter().GetValue())
	}
	connections := families[connectionMetric].GetMetric()
	c.Connected = len(connections) > 0
	for _, m := range connections {
		c.Connected = c.Connected && m.GetGauge().GetValue() == 1
	}
	return c, nil
}

func label(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// Sub is what was counted since the earlier sample of the same process.
func (c Counters) Sub(earlier Counters) Counters {
	return Counters{
		Requests:   subtract(c.Requests, earlier.Requests),
		Conflicts:  c.Conflicts - earlier.Conflicts,
		Probes:     c.Probes - earlier.Probes,
		Reconciles: subtract(c.Reconciles, earlier.Reconciles),
		Connected:  c.Connected,
	}
}

// Activity is a number that stands still exactly while the core does nothing but probe: all requests
// and reconciles without those of the health probes.
func (c Counters) Activity() int {
	sum := -c.Probes
	for _, n := range c.Requests {
		sum += n
	}
	for controller, n := range c.Reconciles {
		if controller != ProbeController {
			sum += n
		}
	}
	return sum
}

// subtract leaves out what did not change.
func subtract(later, earlier map[string]int) map[string]int {
	diff := maps.Clone(later)
	for key, n := range earlier {
		diff[key] -= n
	}
	maps.DeleteFunc(diff, func(_ string, n int) bool { return n == 0 })
	return diff
}
