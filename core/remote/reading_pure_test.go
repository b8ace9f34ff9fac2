package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
)

// TestNodesThatAreReadAgain: that Nodes count as unread since a request has not been answered for so long is an event, and that they no
// longer do. Nothing else reports either while probes are answered.
func TestNodesThatAreReadAgain(t *testing.T) {
	for age, want := range map[time.Duration]int{unreadLimit - 1: 0, unreadLimit: 2} {
		g := NewWithT(t)
		clock, turns := testingclock.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)), 0
		r := &reading{clock: clock, turned: func() { turns++ }}
		renewed := r.begin(func() {})
		clock.Step(age)
		g.Expect(turns).To(Equal(want/2), "that they count as unread is an event, though no request has ended")
		r.end(listing, errors.New("connection refused"), renewed)
		g.Expect(turns).To(Equal(want/2), "once")
		r.end(listing, nil, r.begin(func() {}))
		g.Expect(turns).To(Equal(want))
		r.end(listing, nil, r.begin(func() {}))
		g.Expect(turns).To(Equal(want), "once")
		r.end(watching, nil, renewed)
		r.onOverdue()
		g.Expect(turns).To(Equal(want), "they are read")
	}
}

// TestAReadThatIsAnsweredHasNoLimitAnyMore: that of the next one is its own.
func TestAReadThatIsAnsweredHasNoLimitAnyMore(t *testing.T) {
	g := NewWithT(t)
	clock, turns := testingclock.NewFakeClock(time.Now()), 0
	r := &reading{clock: clock, turned: func() { turns++ }}
	for range 2 {
		r.end(listing, nil, r.begin(func() {}))
		r.begin(func() {})
		g.Expect(clock.Waiters()).To(Equal(1))
		clock.Step(unreadLimit - 1)
		g.Expect(turns).To(BeZero())
	}
	clock.Step(1)
	g.Expect(turns).To(Equal(1))
}

// TestNodesThatAreNotReadAfterSilence: so it is when they are not read since their watch has sent nothing.
func TestNodesThatAreNotReadAfterSilence(t *testing.T) {
	g := NewWithT(t)
	clock, turns := testingclock.NewFakeClock(time.Now()), 0
	r := &reading{clock: clock, turned: func() { turns++ }}
	r.end(watching, nil, r.begin(func() {}))
	clock.Step(silentLimit)
	g.Expect(turns).To(BeZero())
	r.noteSilence()
	renewed := r.begin(func() {})
	clock.Step(unreadLimit)
	g.Expect(turns).To(Equal(1))
	_, why := r.unread("host")
	g.Expect(why).To(ContainSubstring(silent))
	r.end(listing, nil, renewed)
	g.Expect(turns).To(Equal(2))
}

// TestReading: three refusals in a row count, since the first read, and so does any time without a read that is too long, until one
// succeeds.
func TestReading(t *testing.T) {
	g := NewWithT(t)
	clock, turns := testingclock.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)), 0
	r := &reading{clock: clock, turned: func() { turns++ }}
	note := func(err error) { r.end(listing, err, r.begin(func() {})) }
	since := func() time.Time { at, _ := r.unread("host"); return at }
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New(strings.Repeat("no ", 1000)))
	for range 2 {
		first := clock.Now()
		for range refusedLimit - 1 {
			note(forbidden)
			g.Expect(since()).To(BeZero())
			clock.Step(time.Second)
		}
		note(forbidden)
		at, why := r.unread("host")
		g.Expect(at).To(Equal(first))
		g.Expect(why).To(And(HavePrefix("Nodes cannot be read at host since "), ContainSubstring("nodes is forbidden: no no")))
		g.Expect(r.refusal("host")).To(Equal(why))
		g.Expect(len(why)).To(BeNumerically("<", 2*maxRefusal))
		note(nil)
		g.Expect(since()).To(BeZero())
		g.Expect(r.refusal("host")).To(BeEmpty())
	}
	g.Expect(turns).To(Equal(4))
	g.Expect(refuses(apierrors.NewBadRequest("no"))).To(BeTrue())

	for _, err := range []error{
		errors.New("connection refused"), apierrors.NewResourceExpired("too old"), apierrors.NewTooManyRequests("later", 1),
		apierrors.NewServiceUnavailable("not up"), apierrors.NewInternalError(errors.New("away")),
		apierrors.NewGenericServerResponse(http.StatusGone, "list", schema.GroupResource{Resource: "nodes"}, "", "", 0, false),
		&apierrors.StatusError{ErrStatus: metav1.Status{Message: "an error without a code"}},
	} {
		first := clock.Now()
		for range refusedLimit {
			note(err)
		}
		clock.Step(unreadLimit - 1)
		g.Expect(since()).To(BeZero(), err.Error())
		clock.Step(1)
		g.Expect(since()).To(Equal(first))
		g.Expect(r.refusal("host")).To(BeEmpty(), "it may pass by itself")
		before := turns
		note(nil)
		g.Expect(since()).To(BeZero())
		g.Expect(turns).To(Equal(before + 1))
	}
}

// hanging answers reads when the test lets it.
type hanging struct {
	cache.ListerWatcher
	asked, answer chan struct{}
}

func (h hanging) wait(ctx context.Context) error {
	h.asked <- struct{}{}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.answer:
		return nil
	}
}

func (h hanging) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	return &corev1.NodeList{}, h.wait(ctx)
}

func (h hanging) WatchWithContext(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return watch.NewFake(), nil
}

// TestReadingAgain: a read that hangs is sent again when that is wanted, and callers notice nothing; a watch that is open
// ends.
func TestReadingAgain(t *testing.T) {
	for name, read := range map[string]func(*reading) error{
		"list": func(r *reading) error { _, err := r.ListWithContext(t.Context(), metav1.ListOptions{}); return err },
		"watch": func(r *reading) error {
			_, err := r.WatchWithContext(t.Context(), metav1.ListOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			clock := testingclock.NewFakeClock(time.Now())
			server := hanging{asked: make(chan struct{}, 9), answer: make(chan struct{})}
			r := &reading{next: server, clock: clock}
			r.renew()
			r.unanswered(clock.Now())
			clock.Step(1)
			ended := make(chan error, 1)
			go func() { ended <- read(r) }()
			<-server.asked
			clock.Step(unreadLimit)
			since, why := r.unread("host")
			g.Expect(since).To(Equal(clock.Now().Add(-unreadLimit)))
			g.Expect(why).To(ContainSubstring("the request is not answered"))
			r.renew()
			<-server.asked
			g.Expect(ended).NotTo(Receive())
			again, _ := r.unread("host")
			g.Expect(again).To(Equal(since), "it has not been read since the first time")
			r.renew()
			g.Expect(r.renewed).To(Equal(1), "there was no outage")
			r.unanswered(clock.Now().Add(-time.Second))
			r.renew()
			g.Expect(r.renewed).To(Equal(1), "one that is slow comes to its end")
			clock.Step(renewLimit)
			r.unanswered(clock.Now().Add(-2 * renewLimit))
			r.renew()
			<-server.asked
			g.Expect(r.renewed).To(Equal(2))
			server.answer <- struct{}{}
			g.Expect(<-ended).To(Succeed())
			since, _ = r.unread("host")
			g.Expect(since).To(BeZero())
		})
	}
}

// TestReadingEndsWithItsContext, also one that is to be sent again.
func TestReadingEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	server := hanging{asked: make(chan struct{}, 9), answer: make(chan struct{})}
	r := &reading{next: server, clock: clock}
	for _, read := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := r.ListWithContext(ctx, metav1.ListOptions{}); return err },
		func(ctx context.Context) error { _, err := r.WatchWithContext(ctx, metav1.ListOptions{}); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		r.unanswered(clock.Now())
		clock.Step(renewLimit)
		go func() { ended <- read(ctx) }()
		<-server.asked
		cut := r.cut
		r.cut = func() { cancel(); cut() }
		r.renew()
		g.Expect(<-ended).To(MatchError(context.Canceled))
		g.Expect(server.asked).To(BeEmpty())
		r.end(watching, nil, r.renewed)
	}
}

// TestOneLine: texts that just fit stay whole.
func TestOneLine(t *testing.T) {
	g := NewWithT(t)
	fits := strings.Repeat("x", maxRefusal)
	g.Expect(oneLine(fits)).To(Equal(fits))
	g.Expect(oneLine(fits + "x")).To(Equal(fits + "…"))
	g.Expect(oneLine("a\n\tb")).To(Equal("a b"))
}

// TestAWatchIsRenewed if it was begun while the API server did not answer, and only then: a slow one is not asked for all Nodes at each
// probe.
func TestAWatchIsRenewed(t *testing.T) {
	g := NewWithT(t)
	clock, cuts := testingclock.NewFakeClock(time.Now()), 0
	r := &reading{clock: clock}
	open := func() { r.end(watching, nil, r.begin(func() { cuts++ })) }
	open()
	for range 3 {
		clock.Step(time.Second)
		r.unanswered(clock.Now())
		clock.Step(time.Second)
		r.renew()
		g.Expect(cuts).To(BeZero())
	}
	r.unanswered(clock.Now())
	clock.Step(time.Second)
	r.unanswered(clock.Now())
	open()
	r.renew()
	g.Expect(cuts).To(Equal(1))
	clock.Step(unreadLimit)
	since, _ := r.unread("host")
	g.Expect(since).To(Equal(clock.Now().Add(-unreadLimit)), "until it is read again")
	clock.Step(renewLimit)
	r.renew()
	g.Expect(cuts).To(Equal(1), "no request was unanswered since")
	open()
	since, _ = r.unread("host")
	g.Expect(since).To(BeZero())
}

// answering is a server that answers lists with something.
type answering struct {
	cache.ListerWatcherWithContext
	with runtime.Object
}

func (a answering) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return a.with, nil
}

// TestAnAnswerThatIsNoListOfNodes: anyone who owns the kubeconfig decides what answers. Another list must neither be cached as Nodes, nor
// be taken for the news that there are none.
func TestAnAnswerThatIsNoListOfNodes(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	r := &reading{next: answering{with: &corev1.PodList{Items: []corev1.Pod{{}}}}, clock: clock}
	_, err := r.ListWithContext(t.Context(), metav1.ListOptions{})
	g.Expect(err).To(MatchError("the answer is a *v1.PodList and no list of Nodes"))
	clock.Step(unreadLimit)
	_, why := r.unread("host")
	g.Expect(why).To(ContainSubstring("no list of Nodes"))
	r.next = answering{with: &corev1.NodeList{}}
	_, err = r.ListWithContext(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}
