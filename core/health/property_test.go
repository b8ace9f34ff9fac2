package health

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestProperties lives thousands of random lives of a Machine, and checks at every step what must always hold. A failure names its
// seed.
func TestProperties(t *testing.T) {
	for seed := range uint64(600) {
		live(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// live is one life: the clock of the Node is wrong by up to two hours, and things happen to it in any order.
func live(t *testing.T, seed uint64) {
	g, random := NewWithT(t), rand.New(rand.NewPCG(seed, 1))
	skew := time.Duration(random.IntN(240)-120) * time.Minute
	l := &life{WithT: g, facts: facts()}
	if random.IntN(2) == 0 {
		l.facts = facts(nodeless(0))
		l.facts.History = NewHistory(true)
	}
	l.after(0)
	for step := range 30 {
		// A change that does nothing, as a heartbeat does, is as frequent as each other.
		change := random.IntN(8)
		got := l.after(time.Duration(random.IntN(200))*time.Second, func(f *Facts) { disturb(f, change, skew, random) })
		at := fmt.Sprintf("seed %d, step %d, change %d: %+v", seed, step, change, got)
		same := Judge(policy(), l.facts)
		g.Expect(same).To(Equal(got), "%s: judged twice", at)
		speaks := speaksAgainst(l.facts)
		switch got.State {
		case Healthy:
			g.Expect(l.facts.Node).NotTo(BeNil(), at)
			g.Expect(speaks).To(BeFalse(), at)
			g.Expect(l.facts.Unreadable+l.facts.Contested).To(BeEmpty(), at)
		case Unhealthy:
			g.Expect(speaks).To(BeTrue(), at)
			g.Expect(Reasons).To(ContainElement(got.Reason), at)
			g.Expect(l.facts.Unreadable).To(BeEmpty(), "%s: concluded from what cannot be read", at)
			g.Expect(l.facts.Now.Before(l.facts.NotBefore)).To(BeFalse(), "%s: within a grace", at)
			g.Expect(l.facts.Machine.Annotations).To(BeEmpty(), at)
		case Pending, Undetermined:
			if !got.Next.IsZero() {
				g.Expect(got.Next).To(BeTemporally(">", l.facts.Now), "%s: a deadline that has passed is a loop", at)
			} else {
				g.Expect(l.facts.Unreadable+l.facts.Contested+got.Message).NotTo(BeEmpty(), "%s: nothing ends it", at)
			}
		case Exempt:
			g.Expect(l.facts.Machine.Annotations).NotTo(BeEmpty(), at)
		}
	}
	// Once nothing changes any more it ends: healthy, unhealthy, or waiting for an event.
	l.facts.Unreadable, l.facts.Machine.Annotations, l.facts.NotBefore = "", nil, time.Time{}
	for range 10 {
		got := l.after(0)
		if got.Next.IsZero() {
			g.Expect(got.State).To(BeElementOf(Healthy, Unhealthy), "seed %d: %+v", seed, got)
			return
		}
		l.after(got.Next.Sub(l.facts.Now))
	}
	g.Expect(true).To(BeFalse(), "seed %d: it never ends", seed)
}

func disturb(f *Facts, change int, skew time.Duration, random *rand.Rand) {
	stamp := metav1.NewTime(f.Now.Add(skew))
	switch change {
	case 0, 1, 2:
		if f.Node != nil {
			status := []string{"True", "False", "Unknown"}[change]
			before := nodeCondition(f.Node, "Ready")
			if string(before.Status) != status {
				f.Node = f.Node.DeepCopy()
				c := nodeCondition(f.Node, "Ready")
				c.Status, c.LastTransitionTime = "", stamp
				ready(corev1.ConditionStatus(status), 0)(f)
				nodeCondition(f.Node, "Ready").LastTransitionTime = stamp
			}
		}
	case 3:
		f.Node = nil
	case 4:
		f.Unreadable = []string{"", "no connection"}[random.IntN(2)]
	case 5:
		f.Machine.Annotations = nil
		if random.IntN(3) == 0 {
			f.Machine.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: ""}
		}
	case 6:
		f.NotBefore = f.Now.Add(time.Duration(random.IntN(600)) * time.Second)
	}
}

// speaksAgainst reports whether anything speaks against a Machine, for however long.
func speaksAgainst(f Facts) bool {
	if f.Node == nil {
		return true
	}
	return nodeCondition(f.Node, "Ready").Status != "True"
}
