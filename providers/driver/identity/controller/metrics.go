package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	ready = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "millwright_identity_ready",
		Help: "1 while the cloud accepts the credentials of an identity, else 0.",
	}, []string{"kind", "identity"})

	checksTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_identity_checks_total",
		Help: "Number of checks of identities, by the reason of the condition Ready that followed.",
	}, []string{"kind", "reason"})
)

func init() {
	metrics.Registry.MustRegister(ready, checksTotal)
}
