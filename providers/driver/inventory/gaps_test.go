package inventory

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// silent is the answer of a cloud of which zone b says nothing.
var silent = driver.NewIncomplete([]string{"b"}, driver.NewUnknownError("List", "", errors.New("the list is incomplete: b")))

// bare is a scope that a test lists itself.
func bare(t *testing.T) (*scope, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	return newScope(driver.Scope{Location: "r"}, nil, Options{Clock: clk, Fast: fast, Slow: slow}, wake.New()), clk
}

func in(zone, id string) driver.Instance {
	i := instance(id, driverv1.InstanceRunning)
	i.FailureDomain, i.OwnerUID, i.Owner = zone, types.UID("uid-"+id), "ns/"+id
	return i
}

// placed is a handle of a launch in a zone, with or without a provider ID.
func placed(zone, id string) driver.Handle {
	h := handle(id)
	h.Placement.FailureDomain, h.OwnerUID, h.Owner = zone, types.UID("uid-"+id), "ns/"+id
	return h
}

// TestAZoneThatDoesNotAnswer: what was known of it stays, and nothing is concluded of it; changes in the other zones are not held up.
func TestAZoneThatDoesNotAnswer(t *testing.T) {
	g := NewWithT(t)
	s, clk := bare(t)
	three := types.NamespacedName{Name: "three"}
	s.track(one, placed("a", "a-1"), false)
	s.track(two, placed("b", "b-1"), false)
	s.track(three, placed("", "b-2"), false)
	full := clk.Now()
	s.enter([]driver.Instance{in("a", "a-1"), in("b", "b-1"), in("b", "b-2")}, nil, full)

	clk.Step(slow)
	changed, concerned := s.enter([]driver.Instance{in("a", "a-2")}, silent, clk.Now())
	g.Expect(changed).To(ConsistOf(one), "its instance has vanished, which is a change")
	g.Expect(concerned).To(BeEmpty())
	a, b, moved := s.view(placed("a", "a-1")), s.view(placed("b", "b-1")), s.view(placed("", "b-2"))
	g.Expect(a).To(And(HaveField("Listed", false), HaveField("ListedAt", clk.Now()), HaveField("Err", BeNil())))
	g.Expect(b).
		To(And(HaveField("Listed", true), HaveField("ListedAt", full), HaveField("Err", MatchError(ContainSubstring("incomplete: b")))))
	g.Expect(moved).To(And(HaveField("Listed", true), HaveField("ListedAt", full)), "where it is follows from the list before")
	g.Expect(s.view(placed("b", "b-9"))).
		To(And(HaveField("Listed", false), HaveField("ListedAt", full)), "absence from before is all that is known")
	g.Expect(s.view(placed("", "z-9"))).To(HaveField("ListedAt", full), "it may be in b")
	g.Expect(s.others(placed("", "b-1"), "")).To(HaveLen(1), "a second instance there is not forgotten")

	clk.Step(slow)
	changed, _ = s.enter([]driver.Instance{in("a", "a-2"), in("b", "b-1")}, nil, clk.Now())
	g.Expect(changed).To(ConsistOf(three), "now it is certain")
	g.Expect(s.view(placed("b", "b-2"))).To(And(HaveField("Listed", false), HaveField("ListedAt", clk.Now()), HaveField("Err", BeNil())))
}

// TestSilent: what the latest list lacks, until there is one that has it; a list that fails altogether says nothing about that.
func TestSilent(t *testing.T) {
	g := NewWithT(t)
	s, clk := bare(t)
	i := &Inventory{scopes: map[driver.Scope]*scope{s.name: s}}
	g.Expect(i.Silent(driver.Scope{Location: "other"})).To(BeEmpty())
	g.Expect(i.Silent(s.name)).To(BeEmpty())
	s.enter(nil, silent, clk.Now())
	g.Expect(i.Silent(s.name)).To(Equal([]string{"b"}))
	s.enter(nil, errors.New("all of it fails"), clk.Now())
	g.Expect(i.Silent(s.name)).To(Equal([]string{"b"}))
	s.enter(nil, nil, clk.Now())
	g.Expect(i.Silent(s.name)).To(BeEmpty())
}

// TestAZoneThatHasNeverAnswered: before its first list nothing at all is known of it.
func TestAZoneThatHasNeverAnswered(t *testing.T) {
	g := NewWithT(t)
	s, clk := bare(t)
	s.track(one, placed("a", "a-1"), false)
	s.track(two, placed("b", "b-1"), false)
	changed, _ := s.enter([]driver.Instance{in("a", "a-1")}, silent, clk.Now())
	g.Expect(changed).To(ConsistOf(one))
	g.Expect(s.view(placed("a", "a-1")).ListedAt).To(Equal(clk.Now()))
	g.Expect(s.view(placed("b", "b-1")).ListedAt).To(BeZero())
	clk.Step(time.Minute)
	s.enter(nil, errors.New("all of it fails"), clk.Now())
	g.Expect(s.view(placed("b", "b-1"))).To(And(HaveField("ListedAt", BeZero()), HaveField("Err", MatchError("all of it fails"))))
	g.Expect(s.view(placed("a", "a-1")).Err).To(MatchError("all of it fails"))
}

// TestAnOutageOfOneZone is that of its machines alone, and over with it.
func TestAnOutageOfOneZone(t *testing.T) {
	g := NewWithT(t)
	s, clk := bare(t)
	s.track(one, placed("a", "a-1"), false)
	s.track(two, placed("b", "b-1"), false)
	all := []driver.Instance{in("a", "a-1"), in("b", "b-1")}
	began := clk.Now()
	s.enter(all, nil, began)
	var concerned []types.NamespacedName
	for range 4 {
		clk.Step(slow)
		_, woken := s.enter(all[:1], silent, clk.Now())
		concerned = append(concerned, woken...)
	}
	g.Expect(concerned).To(ConsistOf(two), "once")
	g.Expect(s.view(placed("a", "a-1")).Outage).To(BeNil())
	g.Expect(s.view(placed("b", "b-1")).Outage).
		To(And(HaveField("LastListed", began), HaveField("Err", MatchError(ContainSubstring("incomplete: b")))))
	g.Expect(s.unlistedSince()).To(Equal(began), "the age of the list is that of its oldest part")
	_, concerned = s.enter(all, nil, clk.Now())
	g.Expect(concerned).To(ConsistOf(two))
	g.Expect(s.view(placed("b", "b-1")).Outage).To(BeNil())
}

// TestAZoneThatFailsBeforeAllOfThemDo: an outage of everything ends with the lists of those that answer again.
func TestAZoneThatFailsBeforeAllOfThemDo(t *testing.T) {
	g := NewWithT(t)
	s, clk := bare(t)
	s.track(one, placed("a", "a-1"), false)
	s.track(two, placed("b", "b-1"), false)
	s.enter([]driver.Instance{in("a", "a-1"), in("b", "b-1")}, nil, clk.Now())
	for range 4 {
		clk.Step(slow)
		s.enter(nil, errors.New("all"), clk.Now())
	}
	g.Expect(s.view(placed("a", "a-1")).Outage).NotTo(BeNil())
	g.Expect(s.view(placed("b", "b-1")).Outage).NotTo(BeNil())
	_, concerned := s.enter([]driver.Instance{in("a", "a-1")}, silent, clk.Now())
	g.Expect(concerned).To(ContainElement(one))
	g.Expect(s.view(placed("a", "a-1")).Outage).To(BeNil())
	g.Expect(s.view(placed("b", "b-1")).Outage).NotTo(BeNil(), "it has been silent for as long")
}
