package persist

import "sigs.k8s.io/controller-runtime/pkg/metrics"

// ExpiredWaits is what the metrics of the process say about a kind.
func ExpiredWaits(kind string) float64 {
	families, err := metrics.Registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		if family.GetName() != "millwright_cache_waits_expired_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == kind {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}
