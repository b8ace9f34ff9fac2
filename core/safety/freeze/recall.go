package freeze

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recallTimeout bounds the reading of a Cluster from the cache.
const recallTimeout = time.Second

// Recall has the freezer read each Cluster once, when it is first asked about it: if the core before has said that the API server of the
// target cluster does not answer, or answers again since a moment ago, the grace begins with the first answer to this process.
// Otherwise the end of a core would end the grace, and Nodes that could not report would be judged.
func (f *Freezer) Recall(reader client.Reader) { f.recalled = reader }

// recall takes in what the core before has said of a Cluster. What cannot be read says nothing. The mutex is held.
func (f *Freezer) recall(key client.ObjectKey, of *target) {
	if f.recalled == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recallTimeout)
	defer cancel()
	cluster := &clusterv1.Cluster{}
	if f.recalled.Get(ctx, key, cluster) != nil {
		return
	}
	said := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	if said == nil || said.Status != metav1.ConditionFalse || !said.LastTransitionTime.Time.Before(f.start.at) {
		return
	}
	if slices.Contains([]string{ReasonTargetAPIServerUnreachable, ReasonRecovering}, said.Reason) {
		of.frozen, of.recovered, of.recalled = said.LastTransitionTime.Time, f.start.at, true
	}
}
