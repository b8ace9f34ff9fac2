package freeze

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recallTimeout bounds the reading of a Cluster from the cache.
const recallTimeout = time.Second

// Recall has the freezer read each Cluster once, when it is first asked about it, for what the core before has said of it. Otherwise the
// end of a core would end the freeze, and Nodes that could not report would be judged:
//
//   - that the API server of the target cluster does not answer, or answers again since a moment ago: the grace begins with the first
//     answer to this process;
//   - that no core was at work: the grace starts again, and Nodes are compared with Machines if that is not known to be done;
//   - that a restore is suspected: until it said.
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
	switch said.Reason {
	case ReasonTargetAPIServerUnreachable, ReasonRecovering:
		of.frozen, of.recovered, of.recalled = said.LastTransitionTime.Time, f.start.at, true
	case ReasonCoreWasAway:
		of.before = &start{at: f.start.at, last: lastAtWork(said.Message), known: true, briefly: true}
	case ReasonRestoreSuspected:
		of.restored = suspicionOf(said.Message, f.options.RestoreGrace, f.start.at)
	}
}

// startOf is what is known of the time before this process with regard to a Cluster. Of a longer time without a core, and a core that
// ended soon after it, the lease shows that one alone. The mutex is held.
func (f *Freezer) startOf(of *target) start {
	if of.before != nil && (f.start.last.IsZero() || !f.start.away(f.options.Timeout)) {
		return *of.before
	}
	return f.start
}
