package orphans

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
)

// FreezeReasons are the reasons with which the condition RemediationAllowed of a Cluster, if it is False, keeps its orphans: what the API
// server says is not trusted enough to end anything by. Other cores set no such condition, and then nothing is frozen.
func FreezeReasons() []string {
	return []string{"TargetAPIServerUnreachable", "Recovering"}
}

// frozenNow returns whether a Cluster reports that nothing may be replaced.
func frozenNow(cluster *clusterv1.Cluster) bool {
	known := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	return known != nil && known.Status == metav1.ConditionFalse && slices.Contains(FreezeReasons(), known.Reason)
}

// frozen returns whether the Cluster of a mark is.
func (w *World) frozen(f Found) bool {
	lineage, ok := driver.ParseLineage(f.Lineage)
	return ok && w.Clusters[lineage.Cluster].Frozen
}

// thawed is what an orphan is with regard to freezes: after one it has to be seen again.
func (w *World) thawed(f Found, seen Observation) Assessment {
	switch {
	case w.frozen(f):
		return Frozen
	case seen.Frozen:
		return SeenOnce
	}
	return Orphan
}

// next returns the observation that the next scan has.
func (o Observation) next(w *World, f Found) Observation {
	frozen := w.frozen(f)
	if o.First.IsZero() || o.Frozen && !frozen {
		return Observation{First: w.Now, Scans: 1, Frozen: frozen}
	}
	return Observation{First: o.First, Scans: o.Scans + 1, Frozen: frozen}
}
