package orphans

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Assessment is what is concluded about something that the cloud lists.
type Assessment string

const (
	// Ended means that it is terminating or terminated already, or not certain to exist yet.
	Ended Assessment = "Ended"
	// Claimed means that an object claims it, rightly or not.
	Claimed Assessment = "Claimed"
	// Foreign means that nothing shows that it was ever ours. It is counted, and otherwise ignored.
	Foreign Assessment = "Foreign"
	// Young means that it has not been there, or been seen, for long enough, or no scan covers its mark yet.
	Young Assessment = "Young"
	// SeenOnce means that the scan before did not see it without an object.
	SeenOnce Assessment = "SeenOnce"
	// Paused means that its Cluster is paused, and may be being moved.
	Paused Assessment = "Paused"
	// ClusterGone means that we have marked it, and its Cluster is not here any more: moved, or removed by force.
	ClusterGone Assessment = "ClusterGone"
	// NoLineage means that its owner's namespace has a Cluster here, and it carries no lineage: it was launched before the upgrade, or while
	// the record of the installation could not be written.
	NoLineage Assessment = "NoLineage"
	// OtherInstallation means that its Cluster is here, and another installation has marked it: one whose record was lost, or one that was
	// copied to here with the Cluster.
	OtherInstallation Assessment = "OtherInstallation"
	// Unproven means that its Cluster is here, and the record does not prove that its object was: it was launched between a recorded scan and
	// a start, perhaps after the backup that was restored, or its object was removed while the Cluster was paused, perhaps by a move.
	Unproven Assessment = "Unproven"
	// NotLaunched means that its token, or in clouds of names its name, is none that the object of its mark was launched with: a user has
	// made a copy of an instance and its marks, or has marked an instance manually to adopt it.
	NotLaunched Assessment = "NotLaunched"
	// OtherNamespace means that its lineage names a Cluster of another namespace than its mark. No launch from here makes that.
	OtherNamespace Assessment = "OtherNamespace"
	// NotAllowed means that its Cluster is here, in a namespace that may not use the identity by which it was listed: the identity has been
	// narrowed, or a user has forged the mark in an account of their own.
	NotAllowed Assessment = "NotAllowed"
	// Frozen means that it would be an orphan, and its Cluster says that nothing may be replaced now.
	Frozen Assessment = "Frozen"
	// Orphan means that it is ours, certainly, and nothing claims it. It is deleted, unless the policy is to report.
	Orphan Assessment = "Orphan"
)

// reported are the assessments that are reported to people.
var reported = []Assessment{
	ClusterGone, NoLineage, OtherInstallation, Unproven, NotLaunched, OtherNamespace, Frozen, Orphan,
}

// Found is an instance that the cloud lists, or something else that carries a mark.
type Found struct {
	driver.Instance
	// Kind is what it is, in the cloud's words, and Scope where it was listed.
	Kind  string
	Scope driver.Scope
}

// Observation is what this process has seen of something that no object claims, in scans that all succeeded.
type Observation struct {
	// First is when the first of them was, by our own clock; zero for none.
	First time.Time
	// Scans before this one that saw it so.
	Scans int
	// Frozen is true if its Cluster was frozen in the latest of them. After a freeze what was seen until then proves nothing:
	// a user who restores something may have needed that time to put the objects back.
	Frozen bool
}

// Cluster is what has to be known of a Cluster.
type Cluster struct {
	Namespace, Name string
	UID             types.UID
	Paused          bool
	// Frozen is true while it says that nothing may be replaced.
	Frozen bool
	// Generation of the object.
	Generation int64
}

// World is what was read from the API server itself after the cloud had been listed, and the record as it is persisted.
type World struct {
	// Now is the time.
	Now time.Time
	// Grace is for how long something may be unclaimed before that means anything.
	Grace time.Duration
	// Record as it is persisted.
	Record Record
	// Clusters by UID, and Before the generations that they had before the objects were read.
	Clusters map[types.UID]Cluster
	Before   map[types.UID]int64
	// NameLimit is that of the cloud's traits.
	NameLimit int
	// Known is what the record has of the Clusters.
	Known map[types.UID]KnownCluster
	// Claims are those of all objects.
	Claims Claims
	// Denies returns whether the identity of a scope may not be used for a namespace; nil if there are no identities. Anyone who has the
	// account of an identity may write any mark there, but only for those who may use it.
	Denies func(in driver.Scope, namespace string) bool
}

func (w *World) denies(in driver.Scope, namespace string) bool {
	return w.Denies != nil && w.Denies(in, namespace)
}

// Decide returns what is to be concluded about something that the cloud lists. It depends on nothing but its arguments.
func Decide(w *World, f Found, seen Observation) Assessment {
	if hasEnded(f.State) || f.ProviderID == "" {
		return Ended
	}
	if w.Claims.claim(f) {
		return Claimed
	}
	whose := w.assess(f)
	switch {
	case whose == Foreign || whose == Paused || whose == NotAllowed:
		return whose
	case w.isYoung(f, seen) || whose == Young:
		return Young
	case seen.Scans < 1:
		return SeenOnce
	case whose == Orphan:
		return w.thawed(f, seen)
	}
	return whose
}

// assess is whose it is by its mark, without regard to the time.
func (w *World) assess(f Found) Assessment {
	if f.OwnerUID == "" || f.Owner == "" {
		return Foreign
	}
	lineage, ok := driver.ParseLineage(f.Lineage)
	if !ok {
		return w.withoutLineage(f)
	}
	cluster, here := w.Clusters[lineage.Cluster]
	namespace, ours := w.namespaceOf(f), lineage.Installation == w.Record.Installation
	switch {
	case !here && !ours:
		return Foreign
	case !here:
		return ClusterGone
	case w.denies(f.Scope, cluster.Namespace):
		return NotAllowed
	case cluster.Paused:
		return Paused
	case namespace != "" && namespace != cluster.Namespace:
		return OtherNamespace
	case !ours:
		return OtherInstallation
	case w.Record.awaits(lineage.At, w.Now):
		return Young
	case !w.Record.covers(lineage.At), w.unproven(cluster.UID, lineage.At):
		return Unproven
	case !w.launched(f, cluster):
		return NotLaunched
	}
	return Orphan
}

// withoutLineage is Foreign if no Cluster of the owner's namespace is here. Where the mark has a digest for the owner's name, it
// does not show the namespace.
func (w *World) withoutLineage(f Found) Assessment {
	namespace, paused := namespaceOf(f.Owner), false
	for _, c := range w.Clusters {
		if w.denies(f.Scope, c.Namespace) {
			continue
		}
		if c.Namespace == namespace && !c.Paused {
			return NoLineage
		}
		paused = paused || c.Namespace == namespace
	}
	if paused {
		return Paused
	}
	return Foreign
}

// isYoung returns whether it may be too early to miss an object. The cloud's clock is not ours, so both count; what is from the future is
// young. A time that is not known is long ago.
func (w *World) isYoung(f Found, seen Observation) bool {
	return w.Now.Sub(f.LaunchTime) < w.Grace || w.Now.Sub(seen.First) < w.Grace
}

// clockSkew is how much the clocks of two processes may differ of which one has taken over the lease of the other.
const clockSkew = 5 * time.Minute

// namespaceOf is the namespace of the owner in a mark; empty if it is not known. A digest does not show it; an object of the name does.
func (w *World) namespaceOf(f Found) string {
	return cmp.Or(namespaceOf(f.Owner), w.Claims.byOwner[f.Owner].Namespace)
}

// namespaceOf is the namespace in the name of an owner; empty if it is a digest.
func namespaceOf(owner string) string {
	namespace, _, ok := strings.Cut(owner, "/")
	if !ok {
		return ""
	}
	return namespace
}

func hasEnded(state driverv1.InstanceState) bool {
	return state == driverv1.InstanceTerminating || state == driverv1.InstanceTerminated
}
