package predicates_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/controller/predicates"
)

func TestMatches(t *testing.T) {
	g := NewWithT(t)
	labelled := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"cluster.x-k8s.io/watch-filter": "a"}}}
	g.Expect(predicates.MatchesWatchLabel("", labelled)).To(BeTrue())
	g.Expect(predicates.MatchesWatchLabel("a", labelled)).To(BeTrue())
	g.Expect(predicates.MatchesWatchLabel("b", labelled)).To(BeFalse())
	g.Expect(predicates.MatchesWatchLabel("a", &clusterv1.Cluster{})).To(BeFalse())
}

// TestTheUpdateThatTakesAnObjectAwayPasses: who works on it must learn of it.
func TestTheUpdateThatTakesAnObjectAwayPasses(t *testing.T) {
	g := NewWithT(t)
	labelled := func(value string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.WatchLabel: value}}}
	}
	passes := func(before, after string) bool {
		return predicates.HasWatchLabel("a").Update(event.UpdateEvent{ObjectOld: labelled(before), ObjectNew: labelled(after)})
	}
	g.Expect(passes("a", "a")).To(BeTrue())
	g.Expect(passes("a", "b")).To(BeTrue())
	g.Expect(passes("b", "a")).To(BeTrue())
	g.Expect(passes("b", "b")).To(BeFalse())
	for _, value := range []string{"a", "b"} {
		has, own := predicates.HasWatchLabel("a"), value == "a"
		g.Expect(has.Create(event.CreateEvent{Object: labelled(value)})).To(Equal(own))
		g.Expect(has.Delete(event.DeleteEvent{Object: labelled(value)})).To(Equal(own))
		g.Expect(has.Generic(event.GenericEvent{Object: labelled(value)})).To(Equal(own))
	}
}
