package orphans

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/providers/driver"
)

// Reasons of events on the Cluster.
const (
	// OrphanedEvent: something carries our mark and no object claims it; it is not deleted, and the message says why and what to do.
	OrphanedEvent = "OrphanedInstance"
	// DeletedEvent: the cloud has agreed to delete an orphan.
	DeletedEvent = "OrphanDeleted"
	// FailedEvent: the cloud has refused to delete an orphan, or its answer was lost.
	FailedEvent = "OrphanDeletionFailed"
)

// advice is what is reported to people, by assessment.
var advice = map[Assessment]string{
	ClusterGone: "It carries a mark of this provider, and its Cluster is not here any more: it was moved, or removed by force. " +
		"Where it was not moved, terminate it in the cloud",
	NoLineage: "It carries no lineage, so it may be another management cluster's with equal names. If no management cluster owns it, terminate it in the cloud",
	OtherInstallation: "Another installation has marked it: one whose record was lost, or a copy of this management cluster. " +
		"If no management cluster owns it, terminate it in the cloud",
	Unproven: "It was launched shortly before a start of the provider, perhaps after the backup that was restored, or its object was removed while " +
		"the Cluster was paused, as by a move that has failed. If no management cluster owns it, terminate it in the cloud",
	NotLaunched: "It carries the mark of an object for which it was not launched, by its token or name: a copy that was made with the tags of the " +
		"original, or adopted by hand. Take the marks off if it is to stay; if no management cluster owns it, terminate it in the cloud",
	OtherNamespace: "Its lineage is that of a Cluster in another namespace than its owner's. If no management cluster owns it, terminate it in the cloud",
	Frozen: "Nothing of its Cluster may be replaced now (condition RemediationAllowed): it is deleted once that has ended and two more scans " +
		"have seen it. If it is to stay, recreate its object before then",
	Orphan: "--orphan-policy=report leaves it running",
}

// report reports, once, what is not deleted.
func (c *Collector) report(ctx context.Context, w *World, f Found, assessment Assessment) {
	why, ok := advice[assessment]
	if !ok {
		return
	}
	ctrl.LoggerFrom(ctx).Info("No object claims what the cloud lists", append(describe(f), "assessment", assessment)...)
	if cluster, ok := w.clusterOf(f); ok {
		c.event(cluster, corev1.EventTypeWarning, OrphanedEvent, "No %s claims %s %s of %s. %s", c.Kind, f.Kind, f.ID, f.Owner, why)
	}
}

// deleted reports that the cloud has agreed.
func (c *Collector) deleted(ctx context.Context, in driver.Scope, d *candidate) {
	deletions.WithLabelValues(c.Kind, in.String(), d.Kind).Inc()
	ctrl.LoggerFrom(ctx).Info("The cloud deletes what no object claims", describe(d.Found)...)
	c.event(d.cluster, corev1.EventTypeNormal, DeletedEvent, "No %s claimed %s %s of %s since %s: it is deleted",
		c.Kind, d.Kind, d.ID, d.Owner, d.seen.First.UTC().Format("15:04:05 MST"))
}

// failed reports that it has not. The next scan tries it again; each class is reported once.
func (c *Collector) failed(ctx context.Context, in driver.Scope, d *candidate, err error) {
	class := driver.ClassOf(err)
	failures.WithLabelValues(c.Kind, in.String(), string(class)).Inc()
	ctrl.LoggerFrom(ctx).Error(err, "Deleting what no object claims failed; the next scan tries it again", describe(d.Found)...)
	if c.reportFirst(in, d, Assessment(class)) {
		c.event(d.cluster, corev1.EventTypeWarning, FailedEvent, "Deleting %s %s of %s, which no %s claims, failed, and is tried again: %v",
			d.Kind, d.ID, d.Owner, c.Kind, err)
	}
}

// reportFirst notes what is reported of it, and returns whether it was not reported before.
func (c *Collector) reportFirst(in driver.Scope, d *candidate, what Assessment) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.scope(in)
	before := s.reported[d.key()]
	s.reported[d.key()] = what
	return before != what
}

// clusterOf is the Cluster to which it is reported; ok is false if there is none, or it is not certain.
func (w *World) clusterOf(f Found) (found Cluster, ok bool) {
	if lineage, marked := driver.ParseLineage(f.Lineage); marked {
		if found, ok = w.Clusters[lineage.Cluster]; ok {
			return found, ok
		}
	}
	for _, c := range w.Clusters {
		if c.Namespace == namespaceOf(f.Owner) {
			if ok {
				return Cluster{}, false // Which of them, the mark does not say.
			}
			found, ok = c, true
		}
	}
	return found, ok
}

func (c *Collector) event(cluster Cluster, eventType, reason, format string, args ...any) {
	about := &clusterv1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name, UID: cluster.UID},
	}
	c.Recorder.Eventf(about, nil, eventType, reason, "Collect", "%s", events.Cut(fmt.Sprintf(format, args...)))
}

// describe is something in the log.
func describe(f Found) []any {
	return []any{
		"what", f.Kind, "id", f.ID, "providerID", f.ProviderID, "ownerUID", f.OwnerUID, "owner", f.Owner,
		"lineage", f.Lineage, "launched", f.LaunchTime,
	}
}
