package remote

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// streams is a server of one Node whose watches the test feeds; while it is mute, streams are opened and nothing comes of them.
type streams struct {
	cache.ListerWatcher
	mu      sync.Mutex
	version string
	mute    bool
	lists   int
	opened  []metav1.ListOptions
	// refusal is what watches are refused with; plain means that only those are that begin with all Nodes, as by a server that knows no
	// better.
	refusal error
	plain   bool
	stream  *watch.FakeWatcher
}

func (s *streams) set(version string, mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.mute = version, mute
}

func (s *streams) node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", ResourceVersion: s.version, Labels: map[string]string{"version": s.version}},
	}
}

func (s *streams) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}, Items: []corev1.Node{*s.node()}}, nil
}

func (s *streams) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, options)
	if s.refusal != nil {
		return nil, s.refusal
	}
	if s.plain && options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("unknown field")
	}
	s.stream = watch.NewFakeWithChanSize(9, false)
	if ptr.Deref(options.SendInitialEvents, false) && !s.mute {
		s.stream.Add(s.node())
		s.stream.Action(watch.Bookmark, bookmark(s.version, true))
	}
	return s.stream, nil
}

// latest is the watch that was opened last, and how many there were.
func (s *streams) latest() (*watch.FakeWatcher, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream, len(s.opened)
}

func (s *streams) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func bookmark(version string, endOfInitial bool) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if endOfInitial {
		node.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return node
}

// silentWorld is a cache of Nodes that a server of streams feeds.
type silentWorld struct {
	*WithT
	server   *streams
	clock    *testingclock.FakeClock
	reading  *reading
	informer cache.SharedIndexInformer
}

// watchClock is a clock on which nothing waits but watches: it calls no functions, as would be one when Nodes count as unread.
type watchClock struct{ clock.Clock }

func newSilentWorld(t *testing.T, server *streams) *silentWorld {
	t.Helper()
	server.version = "1"
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC))
	w := &silentWorld{WithT: NewWithT(t), server: server, clock: clock, reading: &reading{next: server, clock: watchClock{clock}}}
	w.informer = cache.NewSharedIndexInformer(w.reading, &corev1.Node{}, 0, indexers)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.informer.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	w.Eventually(w.cached).Should(Equal("1"))
	return w
}

// cached is the version of the Node that the cache has.
func (w *silentWorld) cached() string {
	node, there, err := w.informer.GetStore().GetByKey("node")
	if err != nil || !there {
		return "none"
	}
	return node.(*corev1.Node).Labels["version"]
}

func (w *silentWorld) unread() string {
	_, why := w.reading.unread("host")
	return why
}

// pass lets time pass once the watch waits for its next event: it has a timer then that was set at the time of now.
func (w *silentWorld) pass(d time.Duration) {
	w.Eventually(w.clock.HasWaiters).Should(BeTrue())
	w.clock.Step(d)
}

// TestASilentWatchIsReadAgain: a proxy keeps the stream open that has lost the API server behind it. Where bookmarks come every minute,
// their absence shows that soon, and all Nodes are read again. The one at the end of all Nodes shows that this server sends them.
func TestASilentWatchIsReadAgain(t *testing.T) {
	w := newSilentWorld(t, &streams{})
	w.server.set("2", false)
	w.pass(silentLimit)
	w.Eventually(w.cached).Should(Equal("2"))
	w.Eventually(w.unread).Should(BeEmpty())
	_, opened := w.server.latest()
	w.Expect(opened).To(Equal(2))
}

// TestStreamsThatStaySilent: Nodes count as not read until they are; where streams bring nothing, they are listed.
func TestStreamsThatStaySilent(t *testing.T) {
	w := newSilentWorld(t, &streams{})
	w.server.set("2", true)
	w.pass(silentLimit)
	w.Eventually(func() int { _, opened := w.server.latest(); return opened }).Should(Equal(2))
	w.Expect(w.cached()).To(Equal("1"))
	w.pass(unreadLimit)
	w.Expect(w.unread()).To(HavePrefix("Nodes cannot be read at host since 2026-11-27T10:02:30Z: their watch sends nothing"))
	w.pass(silentLimit - unreadLimit)
	w.Eventually(w.cached).Should(Equal("2"))
	w.Expect(w.server.listed()).To(Equal(1))
	w.Eventually(w.unread).Should(BeEmpty())
}

// TestAWatchWithoutBookmarks is not suspected of anything before the time that the API server was to end it, and read again after it.
func TestAWatchWithoutBookmarks(t *testing.T) {
	w := newSilentWorld(t, &streams{plain: true})
	opened := func() int { _, n := w.server.latest(); return n }
	w.Eventually(opened).Should(Equal(2))
	asked := time.Duration(*w.server.opened[1].TimeoutSeconds) * time.Second
	w.server.set("2", false)
	w.pass(asked + overdueLimit - 1)
	w.Expect(w.clock.HasWaiters()).To(BeTrue())
	w.Expect(w.unread()).To(BeEmpty())
	w.clock.Step(1)
	w.Eventually(w.cached).Should(Equal("2"))
}

// TestAWatchThatIsSlow continues as long as something comes of it now and then.
func TestAWatchThatIsSlow(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	server := &streams{version: "1"}
	r := &reading{next: server, clock: clock}
	events, err := r.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1)})
	g.Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	stream, _ := server.latest()
	for range 5 {
		stream.Action(watch.Bookmark, bookmark("1", false))
		g.Eventually(events.ResultChan()).Should(Receive(HaveField("Type", watch.Bookmark)))
		g.Eventually(clock.HasWaiters).Should(BeTrue())
		clock.Step(silentLimit - 1)
	}
	stream.Modify(server.node())
	g.Eventually(events.ResultChan()).Should(Receive(HaveField("Type", watch.Modified)))
	g.Eventually(clock.HasWaiters).Should(BeTrue())
	clock.Step(silentLimit)
	g.Eventually(events.ResultChan()).Should(Receive(HaveField("Object.Reason", metav1.StatusReasonExpired)))
	g.Eventually(events.ResultChan()).Should(BeClosed())
	g.Expect(r.since).To(Equal(clock.Now()))
}

// TestAStreamOfAllNodesIsReadAtItsEnd: that the API server has begun to send them says nothing of those that are still to come.
func TestAStreamOfAllNodesIsReadAtItsEnd(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	server := &streams{version: "1", mute: true}
	r := &reading{next: server, clock: clock}
	events, err := r.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true), TimeoutSeconds: ptr.To[int64](300)})
	g.Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	stream, _ := server.latest()
	stream.Add(server.node())
	g.Eventually(events.ResultChan()).Should(Receive(HaveField("Type", watch.Added)))
	g.Expect(r.bookmarks.Load()).To(BeFalse(), "any server sends Nodes")
	stream.Action(watch.Bookmark, bookmark("1", false))
	g.Eventually(events.ResultChan()).Should(Receive(HaveField("Type", watch.Bookmark)))
	clock.Step(unreadLimit)
	_, why := r.unread("host")
	g.Expect(why).To(ContainSubstring("the request is not answered"))
	stream.Action(watch.Bookmark, bookmark("1", true))
	g.Eventually(events.ResultChan()).Should(Receive(HaveField("Type", watch.Bookmark)))
	_, why = r.unread("host")
	g.Expect(why).To(BeEmpty())
	g.Expect(r.bookmarks.Load()).To(BeTrue())
}

// TestAStreamOfAllNodesThatStops is not waited for until it is over, whatever is known of bookmarks, and its error has Nodes listed and not
// streamed once more. Nodes have not been read since it began.
func TestAStreamOfAllNodesThatStops(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	began := clock.Now()
	r := &reading{next: &streams{version: "1", mute: true}, clock: clock}
	events, err := r.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true), TimeoutSeconds: ptr.To[int64](300)})
	g.Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	g.Eventually(clock.Waiters).Should(Equal(2), "that of the stream, and that by which Nodes count as unread")
	clock.Step(silentLimit)
	g.Eventually(events.ResultChan()).Should(Receive(HaveField("Object.Reason", metav1.StatusReasonTimeout)))
	since, _ := r.unread("host")
	g.Expect(since).To(Equal(began))
}

// TestWatchesThatAreRefused: who may list Nodes and not watch them has them as they were, and says so in the words of the API server until
// a watch is open; each list that succeeds meanwhile ends nothing.
func TestWatchesThatAreRefused(t *testing.T) {
	g := NewWithT(t)
	clock, turns := testingclock.NewFakeClock(time.Now()), 0
	server := &streams{version: "1", refusal: apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no watch"))}
	r := &reading{next: server, clock: clock, turned: func() { turns++ }}
	var since time.Time
	for n := range 5 {
		_, err := r.WatchWithContext(t.Context(), metav1.ListOptions{})
		g.Expect(err).To(HaveOccurred())
		_, err = r.ListWithContext(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		at, why := r.unread("host")
		if n < refusedLimit-1 {
			g.Expect(why).To(BeEmpty())
			clock.Step(unreadLimit)
			continue
		}
		if since.IsZero() {
			since = clock.Now()
		}
		g.Expect(at).To(Equal(since))
		g.Expect(why).To(ContainSubstring("no watch"))
		g.Expect(r.refusal("host")).To(Equal(why))
		clock.Step(time.Minute)
	}
	server.refusal = nil
	events, err := r.WatchWithContext(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	events.Stop()
	_, why := r.unread("host")
	g.Expect(why).To(BeEmpty())
	g.Expect(r.refusal("host")).To(BeEmpty())
	g.Expect(turns).To(Equal(2))
}

// TestAWatchThatEnds is propagated: when the API server ends it, with what cannot be read, and when it is refused.
func TestAWatchThatEnds(t *testing.T) {
	g := NewWithT(t)
	server := &streams{version: "1"}
	r := &reading{next: server, clock: testingclock.NewFakeClock(time.Now())}
	events, err := r.WatchWithContext(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	stream, _ := server.latest()
	stream.Action(watch.Bookmark, &metav1.Status{})
	g.Eventually(events.ResultChan()).Should(Receive(HaveField("Type", watch.Bookmark)))
	stream.Stop()
	g.Eventually(events.ResultChan()).Should(BeClosed())
	events.Stop()

	server.refusal = errors.New("no")
	_, err = r.WatchWithContext(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(MatchError("no"))
	_, opened := server.latest()
	g.Expect(opened).To(Equal(2), "it is for the informer to try again")
}
