package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// counted is how often a method was called in a project, by result.
func counted(g *WithT, project, action string) map[string]float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "millwright_cloud_calls_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["project"] == project && labels["action"] == action && labels["cloud"] == "gcp" {
				found[labels["result"]] += value(m)
			}
		}
	}
	return found
}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() }

// TestCallsAreCounted by project, method and result.
func TestCallsAreCounted(t *testing.T) {
	f := newFixture(t, compute.Options{Projects: []string{"counted"}})
	f.fault(simulator.Fault{Action: "instances.insert", Count: 1, Error: &simulator.APIError{Code: "quotaExceeded"}})
	l := launch(zoneA, "one", 1)
	l.Scope.Location, l.Object.Spec.Project = "counted", "counted"
	for range 2 {
		_, _ = f.Create(f.ctx, l)
	}
	f.Expect(counted(f.WithT, "counted", "instances.insert")).To(Equal(map[string]float64{"Quota": 1, "ok": 1}))
}
