package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	shared "millwright.dev/contracts/remote"
)

// newTestLane makes a lane whose wake-ups and turns can be counted.
func newTestLane(t *testing.T, timeout time.Duration) (l *lane, woken chan types.NamespacedName, turns *atomic.Int32) {
	t.Helper()
	woken, turns = make(chan types.NamespacedName, 1000), &atomic.Int32{}
	l = &lane{
		verb: "PATCH", options: realTime(timeout),
		wake: func(owner types.NamespacedName) { woken <- owner }, turned: func() { turns.Add(1) },
	}
	l.begin(t.Context())
	return l, woken, turns
}

func TestAnAnswerIsHandedOutOnce(t *testing.T) {
	g := NewWithT(t)
	l, woken, _ := newTestLane(t, time.Minute)
	refused := errors.New("refused")
	want := request{id: "1", object: "Node n", send: func(context.Context) (*corev1.Node, error) { return nil, refused }}
	_, err := l.ask(asking("a"), want)
	g.Expect(err).To(MatchError(ContainSubstring("PATCH of Node n")))
	g.Expect(<-woken).To(Equal(owner("a")))
	_, err = l.ask(asking("a"), want)
	g.Expect(err).To(MatchError(refused))
	_, err = l.ask(asking("a"), want)
	g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}), "and then the request is sent again")
	g.Expect(<-woken).To(Equal(owner("a")))

	other := want
	other.id, other.send = "2", func(context.Context) (*corev1.Node, error) { return nil, nil }
	_, err = l.ask(asking("a"), other)
	g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}), "the answer to another request is not taken for its own")
	g.Expect(<-woken).To(Equal(owner("a")))
	_, err = l.ask(asking("a"), other)
	g.Expect(err).NotTo(HaveOccurred())
}

// TestWhatIsUnderWayIsBounded: as many owners as there may be ask a server that hangs; few requests reach it, and later
// ones one at a time, until it answers again.
func TestWhatIsUnderWayIsBounded(t *testing.T) {
	g := NewWithT(t)
	l, woken, turns := newTestLane(t, 200*time.Millisecond)
	const owners = 10 * laneLimit
	var hangs atomic.Bool
	var now, most, later atomic.Int32
	hangs.Store(true)
	send := func(ctx context.Context) (*corev1.Node, error) {
		defer now.Add(-1)
		n := now.Add(1)
		most.Store(max(most.Load(), n))
		if timedOut := l.load().TimedOut; timedOut >= 2*laneLimit {
			later.Store(max(later.Load(), n))
		}
		if !hangs.Load() {
			return nil, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for i := range owners {
		_, err := l.ask(asking(fmt.Sprint(i)), request{id: "1", forget: true, send: send})
		g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	}
	g.Eventually(func() uint64 { return l.load().TimedOut }).WithTimeout(settling).Should(BeNumerically(">", 2*laneLimit+3))
	g.Expect(most.Load()).To(BeEquivalentTo(laneLimit))
	g.Expect(later.Load()).To(BeEquivalentTo(1), "a server that does not answer is tried by one request at a time")
	g.Expect(turns.Load()).To(BeEquivalentTo(1), "and that is reported once")
	g.Expect(woken).To(BeEmpty(), "nothing is woken without an answer")
	_, err := l.ask(asking("0"), request{id: "1", forget: true, send: send})
	g.Expect(err).To(MatchError(ContainSubstring("does not answer in time")))

	l.withdraw(owner("1"))
	hangs.Store(false)
	answered := map[types.NamespacedName]bool{}
	for range owners - 1 {
		answered[<-woken] = true
	}
	g.Expect(answered).To(HaveLen(owners-1), "each owner is woken once")
	g.Expect(answered).NotTo(HaveKey(owner("1")), "but who has withdrawn")
	g.Eventually(turns.Load).WithTimeout(settling).Should(BeEquivalentTo(2))
	g.Expect(l.unansweredSince().IsZero()).To(BeTrue())
	g.Expect(l.calls).To(BeEmpty())
}

// TestANewerRequestReplacesOneThatWaits: what is not under way yet is not sent when its owner wants something else.
func TestANewerRequestReplacesOneThatWaits(t *testing.T) {
	g := NewWithT(t)
	l, woken, _ := newTestLane(t, time.Minute)
	release := make(chan struct{})
	for i := range laneLimit {
		_, _ = l.ask(asking(fmt.Sprint(i)), request{id: "1", send: func(context.Context) (*corev1.Node, error) { <-release; return nil, nil }})
	}
	var sent atomic.Value
	desired := func(id string) request {
		return request{id: id, send: func(context.Context) (*corev1.Node, error) { sent.Store(id); return nil, nil }}
	}
	for _, id := range []string{"old", "new"} {
		_, err := l.ask(asking("late"), desired(id))
		g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	}
	close(release)
	for range laneLimit + 1 {
		<-woken
	}
	g.Expect(sent.Load()).To(Equal("new"))
}

func TestAClosedConnectionSendsNothing(t *testing.T) {
	g := NewWithT(t)
	l, _, _ := newTestLane(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	l.begin(ctx)
	cancel()
	_, err := l.ask(asking("a"), request{id: "1", send: func(context.Context) (*corev1.Node, error) { panic("sent") }})
	g.Expect(err).To(BeAssignableToTypeOf(&shared.NotConnectedError{}))
}

func TestWhatWasWrittenIsNotForgottenByASlowCache(t *testing.T) {
	version := func(resourceVersion string) *corev1.Node {
		node := &corev1.Node{}
		node.Name, node.UID, node.ResourceVersion = "n", "u", resourceVersion
		return node
	}
	for _, test := range []struct {
		name                         string
		from, answer, cached, newest string
	}{
		{"the cache is behind", "9", "10", "9", "10"},
		{"the cache has it", "9", "10", "10", "10"},
		{"the cache is ahead", "9", "10", "11", "11"},
		{"the cache has what another one wrote in between", "9", "12", "11", "12"},
		{"versions of another kind, the cache unchanged", "x", "y", "x", "y"},
		{"versions of another kind, the cache changed", "x", "y", "z", "z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			w := &written{}
			w.add(version(test.answer), test.from)
			g.Expect(w.newest(version(test.cached)).ResourceVersion).To(Equal(test.newest))
			other := version(test.cached)
			other.UID = "recreated"
			g.Expect(w.newest(other)).To(BeIdenticalTo(other))
		})
	}
}

// TestAnOwnerOfTheSameNameIsAnother: a Machine was deleted and another one has its name. It neither gets the answer to what
// the first has asked for, nor waits for it, nor has its own request taken for the other's.
func TestAnOwnerOfTheSameNameIsAnother(t *testing.T) {
	first, second := asking("m"), asking("m")
	second.UID = "second"
	pending := BeAssignableToTypeOf(&PendingError{})
	answer := func(message string) request {
		return request{id: "node", send: func(context.Context) (*corev1.Node, error) { return nil, errors.New(message) }}
	}
	t.Run("an answer that was not taken", func(t *testing.T) {
		g := NewWithT(t)
		l, woken, _ := newTestLane(t, time.Minute)
		_, err := l.ask(first, answer("first"))
		g.Expect(err).To(pending)
		<-woken
		_, err = l.ask(second, answer("second"))
		g.Expect(err).To(pending)
		<-woken
		_, err = l.ask(second, answer("second"))
		g.Expect(err).To(MatchError("second"))
	})
	t.Run("a request that is under way", func(t *testing.T) {
		g := NewWithT(t)
		l, woken, _ := newTestLane(t, time.Minute)
		release := make(chan struct{})
		_, err := l.ask(
			first,
			request{id: "node", send: func(context.Context) (*corev1.Node, error) { <-release; return nil, errors.New("first") }},
		)
		g.Expect(err).To(pending)
		_, err = l.ask(second, answer("second"))
		g.Expect(err).To(pending)
		<-woken
		close(release)
		_, err = l.ask(second, answer("second"))
		g.Expect(err).To(MatchError("second"))
		g.Eventually(func() int { return l.load().Sent }).WithTimeout(settling).Should(BeZero())
		g.Expect(woken).To(BeEmpty(), "an answer without a caller wakes nothing")
		g.Expect(l.calls).To(BeEmpty())
	})
	t.Run("a request that waits", func(t *testing.T) {
		g := NewWithT(t)
		l, woken, _ := newTestLane(t, time.Minute)
		release := make(chan struct{})
		for i := range laneLimit {
			_, _ = l.ask(asking(fmt.Sprint(i)), request{id: "1", send: func(context.Context) (*corev1.Node, error) { <-release; return nil, nil }})
		}
		_, err := l.ask(first, request{id: "node", send: func(context.Context) (*corev1.Node, error) { panic("sent for who is gone") }})
		g.Expect(err).To(pending)
		_, err = l.ask(second, answer("second"))
		g.Expect(err).To(pending)
		waiting := l.load().Waiting
		g.Expect(waiting).To(Equal(1))
		close(release)
		for range laneLimit + 1 {
			<-woken
		}
		_, err = l.ask(second, answer("second"))
		g.Expect(err).To(MatchError("second"))
	})
}

// TestWhatIsNotAllowedTakesNoPlaceInTheQueue: a request that waits is withdrawn when its owner wants something else, and what
// it wants is not sent in its place when it is held back.
func TestWhatIsNotAllowedTakesNoPlaceInTheQueue(t *testing.T) {
	g := NewWithT(t)
	l, woken, _ := newTestLane(t, time.Minute)
	release := make(chan struct{})
	for i := range laneLimit {
		_, _ = l.ask(asking(fmt.Sprint(i)), request{id: "1", send: func(context.Context) (*corev1.Node, error) { <-release; return nil, nil }})
	}
	never := func(context.Context) (*corev1.Node, error) { panic("sent") }
	_, err := l.ask(asking("late"), request{id: "1", send: never})
	g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
	contested := &ContestedError{Node: "n"}
	_, err = l.ask(asking("late"), request{id: "1", send: never, allowed: func(time.Time) error { return contested }})
	g.Expect(err).To(BeIdenticalTo(contested))
	close(release)
	for range laneLimit {
		<-woken
	}
	waiting := l.load().Waiting
	g.Expect(waiting).To(BeZero())
	g.Expect(l.calls).NotTo(HaveKey(owner("late")))
}

// TestWhenNoCallerIsLeft: the answers that would show that the server answers again never come, so it no longer counts as one that does
// not: otherwise nothing would ever be replaced. That is so whether it was the only one, or another one has waited meanwhile.
func TestWhenNoCallerIsLeft(t *testing.T) {
	for name, alone := range map[string]bool{"the only one": true, "another one waits": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l, _, turns := newTestLane(t, 50*time.Millisecond)
			ends := make(chan struct{})
			hang := request{id: "1", object: "Node n", send: func(ctx context.Context) (*corev1.Node, error) {
				<-ctx.Done()
				<-ends
				return nil, ctx.Err()
			}}
			_, err := l.ask(asking("a"), hang)
			g.Expect(err).To(HaveOccurred())
			for range unansweredLimit {
				ends <- struct{}{}
			}
			g.Eventually(turns.Load).Should(BeEquivalentTo(1))
			g.Expect(l.unansweredSince()).NotTo(BeZero())
			last := "a"
			if !alone {
				last = "b"
				_, err = l.ask(asking("b"), hang)
				g.Expect(err).To(HaveOccurred())
				l.withdraw(owner("a"))
				ends <- struct{}{}
				g.Eventually(func() int { return l.load().Waiting }).Should(BeZero())
				g.Expect(l.unansweredSince()).NotTo(BeZero(), "a caller still waits")
			}
			l.withdraw(owner(last))
			g.Expect(turns.Load()).To(BeEquivalentTo(1), "it may be answered yet")
			ends <- struct{}{}
			g.Eventually(l.unansweredSince).Should(BeZero())
			g.Eventually(turns.Load).Should(BeEquivalentTo(2))
			g.Expect(l.load()).To(And(HaveField("Sent", 0), HaveField("Waiting", 0)))
		})
	}
}
