package overshoot

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var frozenMetric = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "millwright_creation_frozen",
	Help: "1 for each MachineDeployment or MachineSet of which no Machine is created, by the reason of its condition Frozen.",
}, []string{"kind", "namespace", "name", "reason"})

func init() { metrics.Registry.MustRegister(frozenMetric) }

// shown has what the metric has, so that nothing is looked up for all others.
type shown struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool
}

// set sets the metric of an object, or removes it without a reason.
func (s *shown) set(kind string, key types.NamespacedName, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] {
		frozenMetric.DeletePartialMatch(prometheus.Labels{"kind": kind, "namespace": key.Namespace, "name": key.Name})
		delete(s.keys, key)
	}
	if reason == "" {
		return
	}
	if s.keys == nil {
		s.keys = map[types.NamespacedName]bool{}
	}
	s.keys[key] = true
	frozenMetric.WithLabelValues(kind, key.Namespace, key.Name, reason).Set(1)
}

// show sets the metric of an object. A set that is frozen with its deployment is not counted again.
func (r *Reconciler) show(object client.Object) {
	reason, _ := r.Guard.Of(object, nil)
	if object.GetLabels()[FrozenLabel] == ByDeployment && deploymentOf(object) != nil {
		reason = ""
	}
	r.shown.set(r.kind(), client.ObjectKeyFromObject(object), reason)
}

func (r *Reconciler) kind() string {
	if r.ofSets {
		return "MachineSet"
	}
	return "MachineDeployment"
}
