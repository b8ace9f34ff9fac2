package measure

import (
	"io"
	"maps"

	"github.com/pkg/errors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The metrics that are read; both cores export them through controller-runtime.
const (
	requestsMetric   = "rest_client_requests_total"
	reconcilesMetric = "controller_runtime_reconcile_total"
)

// conflict is the status code of a write that lost against another one.
const conflict = "409"

// probeController is the controller of upstream's core that probes target clusters: its reconciles come
// with the time, not with the load.
const probeController = "clustercache"

// Counters are a core's own counts since its process began, or between two samples.
type Counters struct {
	// Requests are the API requests by HTTP method, the health probes of target clusters included.
	Requests map[string]int
	// Conflicts are the requests among them that were answered with 409.
	Conflicts int
	// Reconciles are the reconciles by controller.
	Reconciles map[string]int
	// Results are the reconciles by controller and result, such as "machine requeue_after".
	Results map[string]int
}

// ParseCounters reads a metrics page in Prometheus' text format. A metric that is missing counts as
// zero: a core exports a counter only once it has counted.
func ParseCounters(page io.Reader) (Counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return Counters{}, errors.Wrap(err, "parsing metrics")
	}
	c := Counters{Requests: map[string]int{}, Reconciles: map[string]int{}, Results: map[string]int{}}
	for _, m := range families[requestsMetric].GetMetric() {
		n := int(m.GetCounter().GetValue())
		c.Requests[label(m, "method")] += n
		if label(m, "code") == conflict {
			c.Conflicts += n
		}
	}
	for _, m := range families[reconcilesMetric].GetMetric() {
		n := int(m.GetCounter().GetValue())
		c.Reconciles[label(m, "controller")] += n
		c.Results[label(m, "controller")+" "+label(m, "result")] += n
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
		Reconciles: subtract(c.Reconciles, earlier.Reconciles),
		Results:    subtract(c.Results, earlier.Results),
	}
}

// AllRequests are the API requests with every method.
func (c Counters) AllRequests() int { return sum(c.Requests, func(string) bool { return true }) }

// AllReconciles are the reconciles of all controllers but the one that probes target clusters.
func (c Counters) AllReconciles() int {
	return sum(c.Reconciles, func(controller string) bool { return controller != probeController })
}

func sum(counts map[string]int, counted func(name string) bool) int {
	total := 0
	for name, n := range counts {
		if counted(name) {
			total += n
		}
	}
	return total
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
