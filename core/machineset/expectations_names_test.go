package machineset

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	. "millwright.dev/test/coretest/builder"
)

// TestExpectationsOfAnotherSeed: names of two reservations with the same ordinal are two names.
func TestExpectationsOfAnotherSeed(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	l.reserve("set", "bcdfg", []reservedName{{"bcdfg", 0, "before"}}, nil)
	l.reserve("set", "hjklm", []reservedName{{"hjklm", 0, "now"}}, nil)
	l.created("set", Machine("now"), Epoch)
	left, retire := l.stillOpen("set", "hjklm", []reservedName{{"hjklm", 0, "now"}}, nil, nil)
	g.Expect(left).To(BeEmpty(), "it was used; the one before is open")
	g.Expect(retire).To(BeTrue())
	g.Expect(l.openNames("set")).To(Equal([]string{"before"}))
}

// TestExpectationsOfTheOldestUnseen: the API server is asked as soon as one of the Machines has stayed out of the cache for long enough.
func TestExpectationsOfTheOldestUnseen(t *testing.T) {
	l := &expectations{}
	for i, age := range []time.Duration{2, 1, 5, 4, 3} {
		l.created("set", Machine(string(rune('a'+i))), Epoch.Add(-age*time.Second))
	}
	// Maps are gone through in any order.
	for range 50 {
		NewWithT(t).Expect(l.unseenUntil("set")).To(Equal(Epoch.Add(unseenTimeout - 5*time.Second)))
	}
}

// TestExpectationsKeepTheTimeOfADeletion: since when a Machine is being deleted is what the API server says, once it is known.
func TestExpectationsKeepTheTimeOfADeletion(t *testing.T) {
	g := NewWithT(t)
	l := &expectations{}
	machine := Machine("a", Deleting)
	l.deleted("set", machine.UID)
	for _, known := range [][]*clusterv1.Machine{
		l.settle("set", []*clusterv1.Machine{machine}, Epoch.Add(time.Hour)), l.mark("set", []*clusterv1.Machine{machine}, Epoch.Add(time.Hour)),
	} {
		g.Expect(known[0].DeletionTimestamp.Time).To(Equal(Epoch))
	}
}

func TestExpectationsKnowWhatTheyKnow(t *testing.T) {
	g := NewWithT(t)
	g.Expect(metadataOnly(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}})).To(BeTrue())
	g.Expect(metadataOnly(Machine("a"))).To(BeFalse())
}

// TestExpectationsTakeNamesOutOfUse: a name is not used again once a Machine of that name is known, whatever has created it and whatever
// shows it.
func TestExpectationsTakeNamesOutOfUse(t *testing.T) {
	names := []reservedName{{"bcdfg", 0, "a"}, {"bcdfg", 1, "b"}, {"bcdfg", 2, "c"}}
	only := []*clusterv1.Machine{Machine("b"), Machine("another")}
	for name, show := range map[string]func(*expectations){
		"the reservation is read with its Machines": func(l *expectations) { l.reserve("set", "bcdfg", names, only) },
		"the cache": func(l *expectations) {
			l.reserve("set", "bcdfg", names, nil)
			l.settle("set", only, Epoch)
		},
		"the API server": func(l *expectations) {
			l.reserve("set", "bcdfg", names, nil)
			l.verify("set", only, nil, Epoch)
		},
		"it was created": func(l *expectations) {
			l.reserve("set", "bcdfg", names, nil)
			l.created("set", Machine("b"), Epoch)
		},
		"the API server has refused it": func(l *expectations) {
			l.reserve("set", "bcdfg", names, nil)
			l.taken("set", "b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, l := NewWithT(t), &expectations{}
			l.verify("set", nil, nil, Epoch)
			show(l)
			g.Expect(l.openNames("set")).To(Equal([]string{"a", "c"}))
			g.Expect(l.verified("set")).To(Equal(!strings.Contains(name, "refused")), "what has the name may be a Machine of the set")
		})
	}
}
