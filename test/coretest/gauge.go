package coretest

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Gauge is the value of a gauge or counter of this process whose labels are those given, as name and value by turns; -1 if there is none.
func Gauge(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	wanted := map[string]string{}
	for i := 0; i+1 < len(labels); i += 2 {
		wanted[labels[i]] = labels[i+1]
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	series:
		for _, series := range family.GetMetric() {
			if len(series.GetLabel()) != len(wanted) {
				continue
			}
			for _, pair := range series.GetLabel() {
				if wanted[pair.GetName()] != pair.GetValue() {
					continue series
				}
			}
			return series.GetGauge().GetValue() + series.GetCounter().GetValue()
		}
	}
	return -1
}
