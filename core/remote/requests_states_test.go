package remote

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shared "millwright.dev/contracts/remote"
)

// TestLaneAsksOnce: what is under way is not sent again, nor what waits; the last that was asked for waits in its place.
func TestLaneAsksOnce(t *testing.T) {
	g := NewWithT(t)
	l := &lane{options: &shared.Options{Clock: clocktesting.NewFakeClock(time.Now())}}
	_, err := l.ask(asking("a"), request{})
	g.Expect(err).To(BeAssignableToTypeOf(&shared.NotConnectedError{}), "it has not begun")
	l.withdraw(owner("a"))
	l.begin(t.Context())
	l.running = laneLimit
	for range 2 {
		_, err = l.ask(asking("a"), request{id: "1", object: "Node n", allowed: func(time.Time) error { return nil }})
		g.Expect(err).To(MatchError(ContainSubstring("has not answered yet")))
		g.Expect(l.load()).To(And(HaveField("Waiting", 1), HaveField("Sent", laneLimit)))
	}
	l.waiting[0].send = func(context.Context) (*corev1.Node, error) { return nil, nil }
	l.wake = func(types.NamespacedName) {}
	known := l.calls[owner("a")]
	l.mu.Lock()
	l.running = laneLimit - 1
	l.sendNext()
	g.Expect(known.sent).To(BeTrue())
	l.mu.Unlock()
	for _, id := range []string{"1", "2"} {
		l.mu.Lock()
		l.calls[owner("b")] = &call{owner: asking("b"), sent: true, request: request{id: "1"}}
		l.mu.Unlock()
		_, err = l.ask(asking("b"), request{id: id})
		g.Expect(err).To(BeAssignableToTypeOf(&PendingError{}))
		g.Expect(l.load().Waiting).To(BeZero())
		l.mu.Lock()
		g.Expect(l.calls[owner("b")].id).To(Equal("1"), "its answer is not that to what is asked for meanwhile")
		l.mu.Unlock()
	}
}

// TestLaneDistinguishesLateFromRefused: what has run out of time on this side is sent again, what was answered is not, and after the end
// of the connection nothing is recorded.
func TestLaneDistinguishesLateFromRefused(t *testing.T) {
	refused := errors.New("refused")
	expired := func(err error) func(context.Context) (*corev1.Node, error) {
		return func(ctx context.Context) (*corev1.Node, error) {
			<-ctx.Done()
			return nil, err
		}
	}
	at := func(err error) func(context.Context) (*corev1.Node, error) {
		return func(context.Context) (*corev1.Node, error) { return nil, err }
	}
	for name, test := range map[string]struct {
		send                  func(context.Context) (*corev1.Node, error)
		closed, waits, awakes bool
	}{
		"an answer":                 {at(nil), false, false, true},
		"an answer at the last":     {expired(nil), false, false, true},
		"a refusal":                 {at(refused), false, false, true},
		"an error after its time":   {expired(refused), false, true, false},
		"a timeout of the network":  {at(late{}), false, true, false},
		"a connection that is over": {at(nil), true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, awake := NewWithT(t), false
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.closed {
				cancel()
			}
			l := &lane{options: realTime(time.Millisecond), ctx: ctx, running: laneLimit + 1, wake: func(types.NamespacedName) { awake = true }}
			if name == "an answer" || name == "a refusal" {
				l.options = realTime(time.Minute)
			}
			c := &call{owner: asking("a"), request: request{forget: true}}
			l.calls = map[types.NamespacedName]*call{owner("a"): c}
			l.run(ctx, c, test.send)
			g.Expect(awake).To(Equal(test.awakes))
			g.Expect(len(l.waiting) == 1).To(Equal(test.waits))
			_, kept := l.calls[owner("a")]
			g.Expect(kept).To(Equal(!test.awakes || name == "a refusal"), "an error is kept for its owner, an answer that is known is not")
		})
	}
}

// TestLookupsEnd: a read that the end of the connection has cut is no answer, and one that fails is.
func TestLookupsEnd(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	l := &lookups{
		options: realTime(time.Minute), wake: func(types.NamespacedName) { t.Error("woken") },
		read: func(context.Context) (map[string][]*corev1.Node, error) {
			cancel()
			return nil, nil
		},
		known: map[types.NamespacedName]*lookup{owner("a"): {id: "id"}},
	}
	l.run(ctx)
	g.Expect(l.known[owner("a")].done).To(BeZero())

	c := DirectConnection(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("not before Monday")
		},
	}))
	_, err := c.readNodes(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("not before Monday")))
}

// TestDirectRequestsThatAreRepeated: before a change is written again the API server is asked who has undone it, and not before.
func TestDirectRequestsThatAreRepeated(t *testing.T) {
	g := NewWithT(t)
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"a": "1"}}}
	after := before.DeepCopy()
	after.Labels["a"] = "2"
	reads := 0
	var deleted []string
	c := DirectConnection(interceptor.NewClient(fake.NewClientBuilder().WithObjects(before.DeepCopy()).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, options...)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			applied := (&client.DeleteOptions{}).ApplyOptions(options)
			deleted = append(deleted, o.GetName()+" "+string(*applied.Preconditions.UID))
			return nil
		},
	}))
	for i := range 3 {
		_, err := c.PatchNode(asking("m"), NodePatch{Before: before, After: after})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reads).To(Equal(i))
	}
	g.Expect(c.DeleteNode(asking("m"), before)).To(Succeed())
	g.Expect(deleted).To(Equal([]string{"n u"}))
}

// TestWithdrawn: what an owner has asked for is forgotten, whatever it was.
func TestWithdrawn(t *testing.T) {
	g, c := NewWithT(t), &Connection{}
	for _, l := range []*lane{&c.patches, &c.deletes} {
		l.calls = map[types.NamespacedName]*call{owner("a"): {owner: asking("a")}, owner("b"): {owner: asking("b")}}
	}
	c.lookups.known = map[types.NamespacedName]*lookup{owner("a"): {}, owner("b"): {}}
	c.withdraw(owner("a"))
	g.Expect([]int{len(c.patches.calls), len(c.deletes.calls), len(c.lookups.known)}).To(Equal([]int{1, 1, 1}))
}

// TestTrouble: requests that are not answered come first in words, and what has lasted longest in time.
func TestTrouble(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const requests, behind = "DELETE of Nodes", "not before Monday"
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	slow := func(c *Connection) { c.deletes.timeouts, c.deletes.unanswered = unansweredLimit, ago(time.Minute) }
	unread := func(since time.Duration, refused int) func(*Connection) {
		return func(c *Connection) {
			c.nodes.reading = newReading(nil, clocktesting.NewFakeClock(now))
			c.nodes.reading.refused = refused
			if since > 0 {
				c.nodes.reading.since, c.nodes.reading.why = ago(since), behind
			}
		}
	}
	for name, test := range map[string]struct {
		change  []func(*Connection)
		trouble string
		since   time.Duration
		why     string
	}{
		"none":                         {nil, "", 0, ""},
		"none, with a cache":           {[]func(*Connection){unread(0, 0)}, "", 0, ""},
		"requests":                     {[]func(*Connection){slow}, requests, time.Minute, requests},
		"requests, with a cache":       {[]func(*Connection){slow, unread(0, 0)}, requests, time.Minute, requests},
		"the cache is behind":          {[]func(*Connection){unread(time.Hour, 0)}, "", time.Hour, behind},
		"the cache may not be read":    {[]func(*Connection){unread(time.Hour, refusedLimit)}, behind, time.Hour, behind},
		"both, requests since later":   {[]func(*Connection){slow, unread(time.Hour, refusedLimit)}, requests, time.Hour, behind},
		"both, requests since earlier": {[]func(*Connection){slow, unread(30*time.Second, refusedLimit)}, requests, time.Minute, requests},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &Connection{to: &shared.Connection{Config: &rest.Config{Host: "https://host:1"}}}
			c.patches.verb, c.deletes.verb = "PATCH", "DELETE"
			for _, change := range test.change {
				change(c)
			}
			contains := func(text string) OmegaMatcher {
				if text == "" {
					return BeEmpty()
				}
				return And(ContainSubstring(text), ContainSubstring("host:1"))
			}
			g.Expect(c.Trouble()).To(contains(test.trouble))
			since, why := c.TroubleSince()
			g.Expect(why).To(contains(test.why))
			if test.since == 0 {
				g.Expect(since).To(BeZero())
				return
			}
			g.Expect(since).To(Equal(ago(test.since)))
		})
	}
}
