package persist

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestWhatIsRemembered: nothing grows with the objects that come and go. A write that the cache has not shown is remembered for longer: the
// object may still be there, and its next reconcile must find out that the cache is behind.
func TestWhatIsRemembered(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	versions := Versions{Clock: now}
	named := func(uid types.UID) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: "10"}}
	}
	after := func(d time.Duration, uid types.UID) []types.UID {
		now.SetTime(now.Now().Add(d))
		versions.Wrote(named(uid))
		return slices.Sorted(maps.Keys(versions.written))
	}
	versions.Wrote(named("unseen"))
	versions.Wrote(named("seen"))
	shown := func(uid types.UID) {
		versions.Awaited().Update(event.UpdateEvent{ObjectOld: named(uid), ObjectNew: named(uid)})
	}
	shown("seen")
	versions.Released(named("gone"))
	g.Expect(after(30*time.Second-1, "a")).To(Equal([]types.UID{"a", "gone", "seen", "unseen"}))
	shown("a")
	g.Expect(after(1, "b")).To(Equal([]types.UID{"a", "b", "unseen"}))
	g.Expect(after(time.Hour-30*time.Second-1, "b")).To(Equal([]types.UID{"b", "unseen"}))
	g.Expect(after(30*time.Second-1, "b")).To(Equal([]types.UID{"b", "unseen"}), "looked at every half a minute, not at each write")
	g.Expect(after(1, "b")).To(Equal([]types.UID{"b"}))
}
