package remote

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	shared "millwright.dev/contracts/remote"
)

const settling = 30 * time.Second

func owner(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// asking is an owner that asks.
func asking(name string) Owner { return Owner{owner(name), types.UID("uid-" + name)} }

// realTime are the options that lanes and lookups need.
func realTime(timeout time.Duration) *shared.Options {
	return &shared.Options{Clock: clock.RealClock{}, RequestTimeout: timeout}
}

// A caller that comes while Nodes are read shares the next reading with all others that do, and never the one under way.
func TestLookupsAreShared(t *testing.T) {
	g := NewWithT(t)
	begun, goOn, woken := make(chan int, 10), make(chan struct{}), make(chan types.NamespacedName, 10)
	count := 0
	l := &lookups{
		options: realTime(time.Minute), wake: func(owner types.NamespacedName) { woken <- owner },
		read: func(context.Context) (map[string][]*corev1.Node, error) {
			count++
			begun <- count
			<-goOn
			return map[string][]*corev1.Node{"id": {{Spec: corev1.NodeSpec{PodCIDR: string(rune('0' + count))}}}}, nil
		},
	}
	l.begin(t.Context())
	pending := BeAssignableToTypeOf(&PendingError{})
	ask := func(name string) ([]*corev1.Node, error) { return l.ask(asking(name), "id") }
	_, err := ask("first")
	g.Expect(err).To(pending)
	g.Expect(<-begun).To(Equal(1))
	for _, name := range []string{"second", "third"} {
		_, err = ask(name)
		g.Expect(err).To(pending)
	}
	goOn <- struct{}{}
	g.Expect(<-woken).To(Equal(owner("first")), "and no other")
	node, err := ask("first")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node[0].Spec.PodCIDR).To(Equal("1"))
	g.Expect(<-begun).To(Equal(2))
	_, err = ask("second")
	g.Expect(err).To(pending)
	goOn <- struct{}{}
	g.Expect([]types.NamespacedName{<-woken, <-woken}).To(ConsistOf(owner("second"), owner("third")))
	node, err = ask("third")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node[0].Spec.PodCIDR).To(Equal("2"))
	g.Eventually(func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.running
	}).WithTimeout(settling).Should(BeFalse())
	g.Expect(count).To(Equal(2))
}

// A reading that is not answered in time is repeated, and its owners wait on.
func TestLookupThatIsNotAnsweredIsRepeated(t *testing.T) {
	g := NewWithT(t)
	goOn, woken := make(chan error), make(chan types.NamespacedName, 10)
	l := &lookups{
		options: realTime(time.Minute), wake: func(owner types.NamespacedName) { woken <- owner },
		read: func(context.Context) (map[string][]*corev1.Node, error) { return nil, <-goOn },
	}
	l.begin(t.Context())
	_, err := l.ask(asking("a"), "id")
	g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	goOn <- context.DeadlineExceeded
	goOn <- nil
	g.Expect(<-woken).To(Equal(owner("a")))
	node, err := l.ask(asking("a"), "id")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(node).To(BeEmpty())
}

// TestALookupOfAnotherOwnerOfTheSameName: what was found for a Machine that no longer exists is not given to the next of its name.
func TestALookupOfAnotherOwnerOfTheSameName(t *testing.T) {
	g := NewWithT(t)
	woken, readings := make(chan types.NamespacedName, 10), 0
	l := &lookups{
		options: realTime(time.Minute), wake: func(owner types.NamespacedName) { woken <- owner },
		read: func(context.Context) (map[string][]*corev1.Node, error) {
			readings++
			return map[string][]*corev1.Node{"id": {{}}}, nil
		},
	}
	l.begin(t.Context())
	second := asking("m")
	second.UID = "second"
	for i, who := range []Owner{asking("m"), second} {
		_, err := l.ask(who, "id")
		g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
		<-woken
		_, err = l.ask(who, "id")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(readings).To(Equal(i + 1))
	}
}

// TestALookupThatIsRepeated: an owner that asks again after its answer has expired gets one that was read after that, not that of a reading
// under way; and that its first was late says nothing of the next.
func TestALookupThatIsRepeated(t *testing.T) {
	g := NewWithT(t)
	begun, goOn, woken := make(chan int, 10), make(chan error), make(chan types.NamespacedName, 10)
	now, count := clocktesting.NewFakeClock(time.Now()), 0
	l := &lookups{
		options: &shared.Options{Clock: now}, wake: func(owner types.NamespacedName) { woken <- owner },
		read: func(context.Context) (map[string][]*corev1.Node, error) {
			count++
			begun <- count
			return map[string][]*corev1.Node{"id": {{Spec: corev1.NodeSpec{PodCIDR: fmt.Sprint(count)}}}}, <-goOn
		},
	}
	l.begin(t.Context())
	ask := func(name string) (string, *PendingError) {
		nodes, err := l.ask(asking(name), "id")
		if pending := (*PendingError)(nil); errors.As(err, &pending) {
			return "", pending
		}
		g.Expect(err).NotTo(HaveOccurred())
		return nodes[0].Spec.PodCIDR, nil
	}
	_, pending := ask("first")
	g.Expect(pending.Unanswered).To(BeFalse())
	<-begun
	goOn <- context.DeadlineExceeded
	<-begun
	_, pending = ask("first")
	g.Expect(pending.Unanswered).To(BeTrue())
	goOn <- nil
	g.Expect(<-woken).To(Equal(owner("first")))
	now.Step(answerLife - 1)
	found, _ := ask("first")
	g.Expect(found).To(Equal("2"), "it may be asked for again while something is done about it")

	now.Step(1)
	_, _ = ask("second")
	g.Expect(<-begun).To(Equal(3))
	_, pending = ask("first")
	g.Expect(pending).NotTo(BeNil(), "that answer is old")
	g.Expect(pending.Since).To(Equal(now.Now()))
	g.Expect(pending.Unanswered).To(BeFalse())
	goOn <- nil
	g.Expect(<-begun).To(Equal(4))
	g.Expect(<-woken).To(Equal(owner("second")))
	goOn <- nil
	g.Expect(<-woken).To(Equal(owner("first")))
	found, _ = ask("first")
	g.Expect(found).To(Equal("4"))
}
