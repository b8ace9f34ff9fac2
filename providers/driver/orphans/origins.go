package orphans

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// maxStrays is how many strays the record has at most: the first.
const maxStrays = 200

// Stray is an instance with the mark of an object that was here, and a lineage of another management cluster. It is in the record so that
// it is reported after a restart as well.
type Stray struct {
	// OwnerUID of its mark, and the UID of the Cluster that the object was of.
	OwnerUID types.UID `json:"ownerUID"`
	Cluster  types.UID `json:"cluster"`
}

// origin is where an object is or was. Anyone who may write the object, or its launch record, may forge the UID in that, but not its name.
type origin struct {
	cluster types.UID
	// namespace and owner, the name for the mark, are empty where only the UID is known.
	namespace, owner string
}

// learn adds the objects that are here, those that were launched and are missing, and the strays of the record, to what was known before.
func (w *World) learn(before map[types.UID]origin, missing map[types.UID]types.UID, strays []Stray) {
	w.Origins = maps.Clone(before)
	if w.Origins == nil {
		w.Origins = map[types.UID]origin{}
	}
	clusters := w.clustersByName()
	moved := map[types.UID]origin{}
	for _, claim := range w.Claims.byOwner {
		o := origin{clusters[claim.Namespace+"/"+claim.Cluster].UID, claim.Namespace, claim.Handle.Owner}
		w.Origins[claim.UID], moved[claim.Handle.OwnerUID] = o, o
	}
	for object, cluster := range missing {
		moved[object] = origin{cluster: cluster}
	}
	for _, s := range strays {
		moved[s.OwnerUID] = cmp.Or(moved[s.OwnerUID], origin{cluster: s.Cluster})
	}
	for uid, o := range moved {
		if _, ok := w.Origins[uid]; !ok && uid != "" {
			w.Origins[uid] = o
		}
	}
}

// forget drops what is neither claimed nor listed any more.
func (w *World) forget(listed []*list) {
	known := map[types.UID]bool{}
	for _, l := range listed {
		if l.err != nil {
			return
		}
		for _, f := range l.found {
			known[f.OwnerUID] = true
		}
	}
	maps.DeleteFunc(w.Origins, func(uid types.UID, _ origin) bool { return !known[uid] && !w.Claims.uids[uid] })
}

// strayed returns the record with the strays that are listed.
func (r Record) strayed(w *World, listed []*list) Record {
	found := map[types.UID]types.UID{}
	for _, l := range listed {
		for _, f := range l.found {
			if !hasEnded(f.State) && !w.Claims.claim(f) && w.assess(f) == Relabeled {
				found[f.OwnerUID] = w.Origins[f.OwnerUID].cluster
			}
		}
	}
	r.Strays = slices.DeleteFunc(slices.Clone(r.Strays), func(s Stray) bool {
		_, known := w.Origins[s.OwnerUID]
		_, again := found[s.OwnerUID]
		return !known || again
	})
	for _, uid := range slices.Sorted(maps.Keys(found)) {
		r.Strays = append(r.Strays, Stray{uid, found[uid]})
	}
	r.Strays = r.Strays[:min(len(r.Strays), maxStrays)]
	return r
}

// stranger is whose something is that carries no lineage from here: Relabeled if an object that was here had the UID of its mark, and the
// Cluster of the object still is. After a move the Cluster is not here any more.
func (w *World) stranger(f Found) Assessment {
	cluster, here := w.Clusters[w.Origins[f.OwnerUID].cluster]
	switch {
	case !here || w.denies(f.Scope, cluster.Namespace):
		return Foreign
	case cluster.Paused:
		return Paused
	}
	return Relabeled
}

// namespaceOf is the namespace of the owner in a mark; empty if it is not known. A digest does not show it, but an object that has, or had,
// the name.
func (w *World) namespaceOf(f Found) string {
	o := w.Origins[f.OwnerUID]
	if o.owner == "" || driver.OwnerDigest(o.owner) != f.Owner {
		o.namespace = ""
	}
	return cmp.Or(namespaceOf(f.Owner), w.Claims.byOwner[f.Owner].Namespace, o.namespace)
}
