package machineset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	. "millwright.dev/test/coretest/builder"
)

func TestExpectationsAddWhatTheCacheDoesNotShow(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	a, b, c := Machine("a"), Machine("b"), Machine("c")
	l.created("set", b, Epoch)
	l.deleted("set", a.UID)
	known := l.settle("set", []*clusterv1.Machine{a, c}, Epoch)
	g.Expect(Names(known)).To(Equal("a c b"))
	g.Expect(known[0].DeletionTimestamp.IsZero()).To(BeFalse(), "its deletion was asked for")
	g.Expect(a.DeletionTimestamp.IsZero()).To(BeTrue(), "what the cache holds is left alone")
	g.Expect(l.unseenUntil("set")).To(Equal(Epoch.Add(unseenTimeout)))
	g.Expect(l.unseenUntil("another")).To(BeZero())

	known = l.settle("set", []*clusterv1.Machine{b, c}, Epoch)
	g.Expect(Names(known)).To(Equal("b c"))
	g.Expect(l.unseenUntil("set")).To(BeZero(), "the cache has caught up")
	g.Expect(l.of("set").deleted).To(BeEmpty())
}

func TestExpectationsVerifyWhatStaysUnseen(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	g.Expect(l.verified("set")).To(BeFalse(), "after a start nothing is certain")
	l.verify("set", nil, nil, Epoch)
	g.Expect(l.verified("set")).To(BeTrue())
	l.created("set", Machine("a"), Epoch)
	l.settle("set", nil, Epoch.Add(unseenTimeout-time.Second))
	g.Expect(l.verified("set")).To(BeTrue())
	l.settle("set", nil, Epoch.Add(unseenTimeout))
	g.Expect(l.verified("set")).To(BeFalse())
	l.created("set", Machine("young"), Epoch.Add(unseenTimeout-time.Second))
	l.verify("set", nil, nil, Epoch.Add(unseenTimeout))
	g.Expect(Names(l.settle("set", nil, Epoch))).To(Equal("young"), "the other has gone unseen")
	l.invalidate("set")
	g.Expect(l.verified("set")).To(BeFalse())
}

func TestExpectationsLearnsFromTheServer(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	a, b, gone := Machine("a"), Machine("b"), Machine("gone")
	live := []*clusterv1.Machine{Machine("a", Deleting), Machine("new")}
	l.verify("set", append(live, b), []*clusterv1.Machine{a, b, gone}, Epoch)
	known := l.settle("set", []*clusterv1.Machine{a, b, gone}, Epoch)
	g.Expect(Names(known)).To(Equal("a b gone new"))
	var going []string
	for _, m := range known {
		if !m.DeletionTimestamp.IsZero() {
			going = append(going, m.Name)
		}
	}
	g.Expect(going).To(ConsistOf("a", "gone"))
}

func TestExpectationsRemembersWhatIsComplete(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	l.completed("set", "uid-a")
	g.Expect(l.isComplete("set", "uid-a")).To(BeTrue())
	g.Expect(l.isComplete("set", "uid-b")).To(BeFalse())
	l.settle("set", []*clusterv1.Machine{Machine("a")}, Epoch)
	g.Expect(l.isComplete("set", "uid-a")).To(BeTrue(), "it is still there")
	l.settle("set", nil, Epoch)
	g.Expect(l.isComplete("set", "uid-a")).To(BeFalse(), "what is gone is forgotten")
	l.completed("set", "uid-a")
	l.forget("set")
	g.Expect(l.sets).To(BeEmpty())
}

func TestPace(t *testing.T) {
	g := NewWithT(t)
	p := &pace{}
	key := types.NamespacedName{Name: "s"}
	g.Expect(p.delay(key, Epoch)).To(BeZero(), "the first event need not wait")
	p.began(key, Epoch)
	g.Expect(p.delay(key, Epoch.Add(interval/5))).To(Equal(interval * 4 / 5))
	g.Expect(p.delay(key, Epoch.Add(2*interval))).To(BeZero())
	another := types.NamespacedName{Name: "another"}
	p.began(another, Epoch)
	g.Expect(p.delay(key, Epoch.Add(interval/5))).To(Equal(interval*4/5), "another set changes nothing")
	p.forget(another)
	p.forget(key)
	g.Expect(p.last).To(BeEmpty())
}

// TestExpectationsDropsWhatIsGone deletes a Machine that the cache has never shown and that the API server does not have.
func TestExpectationsDropsWhatIsGone(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	stays, late := Machine("stays"), Machine("late")
	l.created("set", late, Epoch)
	l.deleted("set", late.UID)
	g.Expect(Names(l.settle("set", []*clusterv1.Machine{stays}, Epoch))).To(Equal("stays late"), "the cache may still come to show it")
	l.gone("set", late.UID)
	g.Expect(Names(l.settle("set", []*clusterv1.Machine{stays}, Epoch))).To(Equal("stays"))
	l.gone("set", stays.UID)
	known := l.settle("set", []*clusterv1.Machine{stays}, Epoch)
	g.Expect(known[0].DeletionTimestamp.IsZero()).To(BeFalse(), "the cache has yet to show the end of it")
}
