package machineset

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var adoptionsRefused = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "millwright_adoptions_refused",
	Help: "Instances that a MachineSet is to adopt and that are another object's; only sets that have some.",
}, []string{"namespace", "machineset"})

func init() { metrics.Registry.MustRegister(adoptionsRefused) }

// shownRefused are the sets that the metric has, so that nothing is looked up for all others.
var shownRefused sync.Map

// measureAdoptions sets the metric of refused adoptions. While no holder has been asked for, it is left unchanged.
func (s *scope) measureAdoptions() {
	refused := 0
	for _, by := range s.holders {
		if by != "" {
			refused++
		}
	}
	if s.holders != nil || s.Object.Annotations[AdoptAnnotation] == "" {
		showRefused(s.Key(), refused)
	}
}

func showRefused(set types.NamespacedName, n int) {
	if n > 0 {
		shownRefused.Store(set, true)
		adoptionsRefused.WithLabelValues(set.Namespace, set.Name).Set(float64(n))
		return
	}
	if _, shown := shownRefused.LoadAndDelete(set); shown {
		adoptionsRefused.DeleteLabelValues(set.Namespace, set.Name)
	}
}
