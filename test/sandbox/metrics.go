package sandbox

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pkg/errors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the counters of a manager since it started.
type Metrics struct {
	families map[string]*dto.MetricFamily
}

// Metrics reads the manager's counters.
func (m *Manager) Metrics(ctx context.Context) (*Metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, errors.Wrap(err, "building a request for metrics")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, errors.Wrapf(err, "reading the metrics of %s", m.Name)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.Errorf("reading the metrics of %s: %s", m.Name, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	return &Metrics{families: families}, errors.Wrapf(err, "parsing the metrics of %s", m.Name)
}

// Reconciles counts reconciliations by controller.
func (m *Metrics) Reconciles() map[string]int {
	return m.sum("controller_runtime_reconcile_total", "controller")
}

// Gauge is the value of a gauge with that value of a label; 0 if there is none.
func (m *Metrics) Gauge(name, label, value string) float64 {
	for _, metric := range m.families[name].GetMetric() {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == label && pair.GetValue() == value {
				return metric.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// ExpiredWaits has a line for each manager whose wait for its cache has timed out, with the kinds of the objects. Unless watches were
// interrupted, an event was lost.
func (s *Sandbox) ExpiredWaits(ctx context.Context) ([]string, error) {
	var lines []string
	for _, m := range s.managers() {
		counters, err := m.Metrics(ctx)
		if err != nil {
			return nil, err
		}
		if expired := counters.sum("millwright_cache_waits_expired_total", "kind"); len(expired) > 0 {
			lines = append(lines, fmt.Sprintf("%s: %v", m.Name, expired))
		}
	}
	return lines, nil
}

// sum adds up a counter's values by one of its labels.
func (m *Metrics) sum(name, label string) map[string]int {
	sums := map[string]int{}
	family := m.families[name]
	if family == nil {
		return sums
	}
	for _, metric := range family.GetMetric() {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == label {
				sums[pair.GetValue()] += int(metric.GetCounter().GetValue())
			}
		}
	}
	return sums
}
