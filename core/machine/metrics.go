package machine

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var inPlaceUpdatesNotPerformed = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "millwright_machine_in_place_updates_not_performed_total",
	Help: "In-place updates that an owner has asked this core for by the hook UpdateMachine. It performs none.",
})

func init() { metrics.Registry.MustRegister(inPlaceUpdatesNotPerformed) }
