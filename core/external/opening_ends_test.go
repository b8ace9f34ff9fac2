package external_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"millwright.dev/core/external"
)

// TestADefinitionThatChangesUnseen: what no reconcile has asked about since is examined as well, and who asks before the event gets what
// holds.
func TestADefinitionThatChangesUnseen(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	release := w.reader.holds(things)
	w.informers.Changed(w.ctx, things)
	w.Expect(w.informers.Openings()).To(BeZero(), "its status has changed")
	release()
	w.define(definition("Thing", things, 2, "v1"))
	w.Eventually(w.cache.removed.Load).Should(BeEquivalentTo(1), "its version is not served")

	w.define(definition("Thing", things, 3, "v1", "v1"))
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	w.reader.define(things, nil)
	w.Expect(w.get("Thing")).To(Satisfy(external.NotInstalled))
	w.Expect(w.cache.removed.Load()).To(BeEquivalentTo(2))
}

// TestADefinitionThatChangesDuringItsAnswer has the answer be about another definition, or about one whose informer has ended.
func TestADefinitionThatChangesDuringItsAnswer(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	w.reader.changes(func() { w.define(definition("Thing", things, 3, "v1", "v1", "v2")) })
	w.define(definition("Thing", things, 2, "v1", "v1", "v2"))
	w.Eventually(w.informers.Openings).Should(BeZero())
	w.Expect([]int32{w.cache.begun.Load(), w.cache.removed.Load()}).To(Equal([]int32{1, 0}), "the informer is kept")

	w.reader.changes(func() {
		w.define(definition("Thing", things, 4, "v2", "v1", "v2"))
		w.define(definition("Thing", things, 4, "v1", "v1", "v2"))
	})
	w.define(definition("Thing", things, 4, "v1", "v1", "v2"))
	w.Eventually(w.informers.Openings).Should(BeZero(), "there is another attempt at once")
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	w.Expect([]int32{w.cache.begun.Load(), w.cache.removed.Load()}).To(Equal([]int32{2, 1}))
}

// TestADefinitionThatGoesBack to a version that is known not to be served, while another is examined, has no informer.
func TestADefinitionThatGoesBack(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.define(definition("Thing", things, 2, "v2", "v1"))
	w.Eventually(func() error { return w.get("Thing") }).Should(Satisfy(external.NotServed))
	release := w.reader.holds(things)
	w.define(definition("Thing", things, 2, "v1", "v1"))
	w.Expect(w.get("Thing")).To(beSyncing)
	w.define(definition("Thing", things, 2, "v2", "v1"))
	w.Expect(w.get("Thing")).To(Satisfy(external.NotServed))
	w.Eventually(w.informers.Openings).Should(BeZero(), "there is nothing to examine")
	release()
	w.Expect(w.cache.begun.Load()).To(BeZero())
}

// TestADefinitionThatGoesWhileItIsMapped leaves no informer.
func TestADefinitionThatGoesWhileItIsMapped(t *testing.T) {
	w := newUnmappedShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(1))
	w.define(nil)
	close(w.mapper.things)
	w.Eventually(w.informers.Openings).Should(BeZero())
	w.Expect(w.cache.removed.Load()).To(Equal(w.cache.begun.Load()))
}

// TestAMapperThatRefuses is the cause, and no informer is begun: the cache would ask again, under its lock.
func TestAMapperThatRefuses(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.mapper.err = errors.New("no such resource")
	w.use(w.cache, w.clock)
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(w.clock.Waiters).Should(Equal(2), "the pause, and what reports")
	w.clock.Step(external.SyncGrace)
	w.Eventually(func() error { return w.get("Thing") }).Should(MatchError(ContainSubstring("no such resource")))
	w.Expect(w.cache.begun.Load()).To(BeZero())
}

// TestADefinitionThatCannotBeFound because the read of its metadata fails ends nothing.
func TestADefinitionThatCannotBeFound(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	w.reader.breaks(errors.New("stopped"))
	w.informers.Changed(w.ctx, things)
	w.Expect(w.get("Thing")).To(MatchError(ContainSubstring("stopped")))
	w.reader.breaks(nil)
	w.Expect(w.get("Thing")).To(Succeed())
	w.Expect(w.cache.removed.Load()).To(BeZero())
}

// TestADefinitionThatIsCorrected is examined at once, and again after the shortest pause.
func TestADefinitionThatIsCorrected(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.reader.refuses(things, errors.New("refused"))
	w.Expect(w.get("Thing")).To(beSyncing)
	after := func(reads int, pause time.Duration) {
		t.Helper()
		w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(reads))
		w.Eventually(w.clock.Waiters).Should(Equal(2), "the pause, and what reports")
		w.clock.Step(pause)
	}
	after(1, external.MinReopen)
	after(2, 2*external.MinReopen)
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(3))
	w.Eventually(w.clock.Waiters).Should(Equal(2))
	w.define(definition("Thing", things, 2, "v1", "v1"))
	after(4, external.MinReopen)
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(5))
}

// TestAKindThatIsNeverRead is watched once and reported, and not awaited any more when it is uninstalled.
func TestAKindThatIsNeverRead(t *testing.T) {
	for _, takesLong := range []bool{false, true} {
		neverRead(t, takesLong)
	}
}

func neverRead(t *testing.T, takesLong bool) {
	t.Helper()
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.cache.informer = controllertest.NewFakeInformer()
	w.use(w.cache, w.clock)
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(w.informers.Openings).Should(BeZero())
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(w.clock.Waiters).Should(Equal(1), "what reports that it takes long")
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(w.clock.Waiters).Should(Equal(1))
	w.Consistently(w.clock.Waiters).WithTimeout(20*time.Millisecond).Should(Equal(1), "it is watched once")
	w.drained()
	if takesLong {
		w.clock.Step(external.SyncGrace)
		w.enqueued("that it takes long must be reported")
		w.Expect(w.get("Thing")).To(SatisfyAll(Satisfy(external.BeingRead), Not(beSyncing)))
	}
	w.define(nil)
	w.enqueued("there is nothing to wait for")
	w.Eventually(w.clock.Waiters).Should(BeZero())
}

// TestAnObjectThatThereIsNot is reported as that.
func TestAnObjectThatThereIsNot(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: "Thing", Name: "another"}
	_, err := w.kinds.Get(w.ctx, ref, "ns", waiter)
	w.Expect(err).To(Satisfy(external.Gone))
}

// TestAnExaminationEndsWithTheControllers, of which a bubble would be left otherwise.
func TestAnExaminationEndsWithTheControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newSimulation(ctx, NewWithT(t), 0)
		defer s.queue.ShutDown()
		defer cancel()
		s.reader.refuses(things, errors.New("refused"))
		s.deliver()
		s.queue.Add(waiter)
		s.reconcile()
		synctest.Wait()
		s.Expect(s.informers.Openings()).To(Equal(1))
	})
}

func TestGone(t *testing.T) {
	g := NewWithT(t)
	resource := schema.GroupResource{Group: group, Resource: "things"}
	g.Expect(external.Gone(apierrors.NewNotFound(resource, "t"))).To(BeTrue())
	g.Expect(external.Gone(apierrors.NewConflict(resource, "t", errors.New("changed")))).To(BeFalse())
	g.Expect(external.Gone(nil)).To(BeFalse())
	notServed := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "t", "404 page not found", 0, true)
	g.Expect(apierrors.HasStatusCause(notServed, metav1.CauseTypeUnexpectedServerResponse)).To(BeTrue())
	g.Expect(external.Gone(notServed)).To(BeFalse())
}
