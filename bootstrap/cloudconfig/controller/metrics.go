package controller

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

var joinsOverdue = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "millwright_cloudconfig_joins_overdue",
	Help: "Number of machines of a Cluster (namespace/name) that have not joined for longer than --join-overdue-after. Only Clusters that have some.",
}, []string{"cluster"})

func init() {
	metrics.Registry.MustRegister(joinsOverdue)
}

// overdue counts the CloudConfigs whose join is. It is filled again after a restart, when each of them is reconciled.
type overdue struct {
	mu       sync.Mutex
	clusters map[client.ObjectKey]client.ObjectKey // by CloudConfig
}

// follow counts the CloudConfig, or not, by its condition.
func (o *overdue) follow(s *scope) {
	c := meta.FindStatusCondition(s.Object.Status.Conditions, bootstrapv1.NodeJoinedCondition)
	if s.machine == nil || !s.machine.DeletionTimestamp.IsZero() || c == nil || c.Reason != bootstrapv1.JoinOverdueReason {
		o.forget(s.Key())
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	config, cluster := s.Key(), clusterKey(s.machine)
	if o.clusters == nil {
		o.clusters = map[client.ObjectKey]client.ObjectKey{}
	}
	if _, ok := o.clusters[config]; !ok {
		o.clusters[config] = cluster
		joinsOverdue.WithLabelValues(cluster.String()).Inc()
	}
}

// forget stops to count the CloudConfig. A Cluster without any has no series.
func (o *overdue) forget(config client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cluster, ok := o.clusters[config]
	if !ok {
		return
	}
	delete(o.clusters, config)
	joinsOverdue.WithLabelValues(cluster.String()).Dec()
	for _, other := range o.clusters {
		if other == cluster {
			return
		}
	}
	joinsOverdue.DeleteLabelValues(cluster.String())
}
