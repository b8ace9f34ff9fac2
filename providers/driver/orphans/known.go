package orphans

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// maxClusters is how many Clusters the record has at most. Of further ones nothing is ended.
const maxClusters = 5000

// KnownCluster is what the record has of a Cluster, so that it is remembered after a restart. Times are in seconds since 1970.
type KnownCluster struct {
	UID types.UID `json:"uid"`
	// Generation is that of the Cluster when it was last seen, not paused; zero if it was paused then. With each pause that spec.paused asks
	// for, as clusterctl move does, the generation grows, so one that is as it was proves that there was none in between.
	Generation int64 `json:"generation,omitempty"`
	// UnprovenUntil is until when marks prove nothing, since their objects may have been moved away; zero for none. What still has its
	// object is marked again. The name in the record is that of an earlier version, whose records count.
	UnprovenUntil int64 `json:"doubtUntil,omitempty"`
}

// unproven returns whether a mark of that time proves nothing.
func (k KnownCluster) unproven(at time.Time) bool { return at.Unix() < k.UnprovenUntil }

// examined returns the record after a scan that began at that time, with what is to be remembered of the Clusters that are here.
//
// A Cluster that may have been paused since it was last seen may have lost objects to another management cluster, by a move that has failed
// half-way. If then something of it has no object, or may be where nothing could be listed, no mark that it has by then proves
// anything any more. Else nothing has been moved away.
func (r Record) examined(w *World, began time.Time, listed []*list) Record {
	unclaimed, complete := w.unclaimed(r, listed)
	before := r.clusters()
	var first, rest []KnownCluster
	for uid, cluster := range w.Clusters {
		k, known := before[uid]
		k.UID = uid
		switch {
		case cluster.Paused || w.Before[uid] != cluster.Generation:
			k.Generation = 0
		case k.Generation != cluster.Generation:
			if unclaimed[uid] || !complete {
				k.UnprovenUntil = max(began.Unix(), k.UnprovenUntil)
			}
			k.Generation = cluster.Generation
		}
		if known {
			first = append(first, k)
		} else {
			rest = append(rest, k)
		}
	}
	byUID := func(a, b KnownCluster) int { return cmp.Compare(a.UID, b.UID) }
	slices.SortFunc(first, byUID)
	slices.SortFunc(rest, byUID)
	r.Clusters = append(first, rest...)
	r.Clusters = r.Clusters[:min(len(r.Clusters), maxClusters)]
	return r
}

// unclaimed returns the Clusters that something is certainly of, by what the record has proved until now, that no object claims. complete
// is false if not everything could be listed.
func (w *World) unclaimed(r Record, listed []*list) (clusters map[types.UID]bool, complete bool) {
	clusters, complete = map[types.UID]bool{}, true
	known := r.clusters()
	for _, l := range listed {
		complete = complete && l.err == nil
		for _, f := range l.found {
			lineage, ok := driver.ParseLineage(f.Lineage)
			if !ok || hasEnded(f.State) || w.Claims.claim(f) {
				continue
			}
			cluster, here := w.Clusters[lineage.Cluster]
			covered := lineage.Installation == r.Installation && r.covers(lineage.At) && !known[cluster.UID].unproven(lineage.At)
			if here && covered && !w.denies(f.Scope, cluster.Namespace) {
				clusters[cluster.UID] = true
			}
		}
	}
	return clusters, complete
}

// clusters are those of the record, by UID.
func (r Record) clusters() map[types.UID]KnownCluster {
	all := make(map[types.UID]KnownCluster, len(r.Clusters))
	for _, k := range r.Clusters {
		all[k.UID] = k
	}
	return all
}

// persisted takes over the record as it was written.
func (w *World) persisted(r Record) { w.Record, w.Known = r, r.clusters() }

// unproven returns whether a mark of a Cluster proves nothing, by what is known of the Cluster.
func (w *World) unproven(cluster types.UID, at time.Time) bool {
	k, known := w.Known[cluster]
	return !known || k.unproven(at)
}
