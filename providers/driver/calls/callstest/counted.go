// Package callstest reads what package calls has counted, in tests.
package callstest

import (
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Counted returns how often each action was called at a location of a cloud, by "<action> <result>".
func Counted(cloud, location string) (map[string]float64, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return nil, err
	}
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
			if labels["cloud"] == cloud && labels["location"] == location {
				found[labels["action"]+" "+labels["result"]] += m.GetCounter().GetValue()
			}
		}
	}
	return found, nil
}
