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

// keepContest is for how long after its latest sign a copy, or another owner, counts: it may be at rest, or shut down for a while.
const keepContest = 7 * 24 * time.Hour

// KnownCluster is what the record has of a Cluster, so that it is remembered after a restart. Times are in seconds since 1970.
type KnownCluster struct {
	UID types.UID `json:"uid"`
	// Generation is that of the Cluster when it was last seen, not paused; zero if it was paused then. With each pause that spec.paused asks
	// for, as clusterctl move does, the generation grows, so one that is as it was proves that there was none in between.
	Generation int64 `json:"generation,omitempty"`
	// UnprovenFrom and UnprovenUntil bound the marks that prove nothing, since their objects may have been moved away, or no longer exist
	// before a scan has seen them. What still has its object is marked again. UnprovenUntil is zero for none. The names in the record
	// are of before, so that one that was written by an earlier version counts.
	UnprovenFrom  int64 `json:"doubtFrom,omitempty"`
	UnprovenUntil int64 `json:"doubtUntil,omitempty"`
	// Contested and Disputed are when the latest sign of it was seen; zero for never.
	Contested int64 `json:"contested,omitempty"`
	Disputed  int64 `json:"disputed,omitempty"`
}

// unproven returns whether a mark of that time proves nothing.
func (k KnownCluster) unproven(at time.Time) bool {
	return at.Unix() >= k.UnprovenFrom && at.Unix() < k.UnprovenUntil
}

// withUnproven returns it with more marks that prove nothing.
func (k KnownCluster) withUnproven(from, until int64) KnownCluster {
	if k.UnprovenUntil > 0 {
		from = min(from, k.UnprovenFrom)
	}
	k.UnprovenFrom, k.UnprovenUntil = from, max(until, k.UnprovenUntil)
	return k
}

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
				k = k.withUnproven(0, began.Unix())
			}
			k.Generation = cluster.Generation
		}
		if w.Contested[uid] {
			k.Contested = began.Unix()
		}
		if w.Disputed[uid] {
			k.Disputed = began.Unix()
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
			epoch, _ := r.epoch(lineage.Epoch)
			if here && !w.denies(f.Scope, cluster.Namespace) && epoch.covers(lineage.At) && !known[cluster.UID].unproven(lineage.At) {
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

// withUnproven returns the record with marks of a Cluster that prove nothing.
func (r Record) withUnproven(cluster types.UID, from, until int64) Record {
	r.Clusters = slices.Clone(r.Clusters)
	i := slices.IndexFunc(r.Clusters, func(k KnownCluster) bool { return k.UID == cluster })
	if i < 0 {
		i = len(r.Clusters)
		r.Clusters = append(r.Clusters, KnownCluster{UID: cluster})
	}
	r.Clusters[i] = r.Clusters[i].withUnproven(from, until)
	return r
}

// persisted takes over the record as it was written.
func (w *World) persisted(r Record, current string) {
	w.Record, w.Current, w.Known = r, current, r.clusters()
	w.Contested, w.Disputed = map[types.UID]bool{}, map[types.UID]bool{}
	for uid, k := range w.Known {
		w.Contested[uid] = w.Now.Sub(time.Unix(k.Contested, 0)) < keepContest
		w.Disputed[uid] = w.Now.Sub(time.Unix(k.Disputed, 0)) < keepContest
	}
}

// unproven returns whether a mark of a Cluster proves nothing, by what is known of the Cluster.
func (w *World) unproven(cluster types.UID, at time.Time) bool {
	k, known := w.Known[cluster]
	return !known || k.unproven(at)
}
