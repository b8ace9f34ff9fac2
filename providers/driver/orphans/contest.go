package orphans

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// takeover is a mark that this process has replaced, or tried to.
type takeover struct {
	// object that owns the instance here.
	object types.UID
	// before is the lineage that was replaced.
	before string
	// reported is true once it was reported that another owner has replaced the mark in turn.
	reported bool
}

// takeOver notes what is about to be replaced. What is not listed any more is forgotten.
func (s *scope) takeOver(l *list, owned map[Cluster][]Claim) {
	listed := map[string]string{}
	for _, f := range l.found {
		listed[f.key()] = f.Lineage
	}
	maps.DeleteFunc(s.taken, func(key string, _ takeover) bool { _, ok := listed[key]; return !ok })
	for _, claims := range owned {
		for _, claim := range claims {
			key := Found{Kind: kindInstance, Instance: driver.Instance{ProviderID: claim.Handle.ProviderID}}.key()
			next := takeover{object: claim.UID, before: listed[key]}
			if t := s.taken[key]; t.object == claim.UID {
				next.reported = t.reported
			}
			s.taken[key] = next
		}
	}
}

// dispute notes the Clusters of which an instance carries neither the mark that this process has written nor that which it has replaced:
// another management cluster has an object for it as well. So it is where what was moved away is restored from a backup. Both continue to
// mark it, since whichever gives way would have it ended by the other once the object there is removed by force; but neither ends anything.
func (c *Collector) dispute(w *World, listed []*list) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Disputed = map[types.UID]bool{}
	clusters := w.clustersByName()
	for _, l := range listed {
		taken := c.scope(l.scope).taken
		for _, f := range l.found {
			claim, t := w.Claims.byOwner[f.Owner], taken[f.key()]
			cluster, here := clusters[claim.Namespace+"/"+claim.Cluster]
			if !here || claim.UID == "" || claim.UID != t.object || f.Lineage == t.before || !w.ofAnother(f, cluster) {
				continue
			}
			w.Disputed[cluster.UID] = true
			if !t.reported {
				t.reported = true
				taken[f.key()] = t
				c.event(cluster, corev1.EventTypeWarning, ContestedEvent, "Another management cluster writes its mark on instance %s of %s, which %s %s "+
					"claims here; the object may have been moved and then restored here from a backup. Nothing of this Cluster is collected until "+
					"a week after the last such write. Let only one management cluster have the object", f.ID, f.Owner, c.Kind, f.Owner)
			}
		}
	}
}

// ofAnother returns whether something carries a lineage that is not of this Cluster and this record.
func (w *World) ofAnother(f Found, cluster Cluster) bool {
	lineage, ok := driver.ParseLineage(f.Lineage)
	_, known := w.Record.epoch(lineage.Epoch)
	return ok && (!known || lineage.Cluster != cluster.UID)
}

// clustersByName are the Clusters by namespace/name.
func (w *World) clustersByName() map[string]Cluster {
	byName := map[string]Cluster{}
	for _, cluster := range w.Clusters {
		byName[cluster.Namespace+"/"+cluster.Name] = cluster
	}
	return byName
}
