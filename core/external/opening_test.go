package external_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

var beSyncing = Satisfy(external.NotSynced)

func noContract(err error) bool {
	var noContract *version.NoContractError
	return errors.As(err, &noContract)
}

// TestADefinitionThatIsNotAnswered: while an API server does not answer about one kind, no caller waits, another kind is read, and there is
// one request however many ask.
func TestADefinitionThatIsNotAnswered(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	release := w.reader.holds(things)
	asked := make(chan error, 20)
	for range cap(asked) {
		go func() { asked <- w.get("Thing") }()
	}
	for range cap(asked) {
		w.Eventually(asked).Should(Receive(beSyncing))
	}
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(1))
	w.Eventually(func() error { return w.get("Other") }).Should(Succeed(), "another kind")
	w.drained()

	w.clock.Step(external.SyncGrace)
	w.enqueued("that it takes long must be reported")
	w.Expect(w.get("Thing")).To(SatisfyAll(Satisfy(external.BeingRead), Not(beSyncing), MatchError(ContainSubstring("has not answered"))))
	release()
	w.enqueued("the kind can be read")
	w.Expect(w.get("Thing")).To(Succeed())
	w.Expect(w.reader.reads.Load()).To(BeEquivalentTo(2), "one for each kind")
}

// TestAMapperThatIsNotAnswered holds up its kind alone: the cache, which asks it under a lock, does so when it knows the answer.
func TestAMapperThatIsNotAnswered(t *testing.T) {
	w := newUnmappedShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(func() error { return w.get("Other") }).Should(Succeed())
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Expect(w.cache.begun.Load()).To(BeZero())
	close(w.mapper.things)
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
}

// TestADefinitionThatMayNotBeRead is tried again, and reported in the words of the API server once that takes long.
func TestADefinitionThatMayNotBeRead(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.reader.refuses(things, errors.New("refused by policy"))
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(1))
	w.Eventually(w.clock.Waiters).Should(Equal(2), "the pause, and what reports")
	w.clock.Step(external.MinReopen)
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(2))
	w.Eventually(w.clock.Waiters).Should(Equal(2))
	w.clock.Step(external.MinReopen)
	w.Consistently(w.reader.reads.Load).WithTimeout(50*time.Millisecond).Should(BeEquivalentTo(2), "the pause doubles")
	w.clock.Step(external.MinReopen)
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(3))
	w.clock.Step(external.SyncGrace)
	w.enqueued("that it takes long must be reported")
	w.Expect(w.get("Thing")).To(MatchError(SatisfyAll(ContainSubstring("cannot be read yet"), ContainSubstring("refused by policy"))))
	w.reader.refuses(things, nil)
	w.Eventually(func() error { w.clock.Step(time.Minute); return w.get("Thing") }).Should(Succeed())
}

// TestADefinitionThatChanges while it is not answered for.
func TestADefinitionThatChanges(t *testing.T) {
	for _, test := range []struct {
		name string
		// define is the change; nil is that the kind is uninstalled.
		define *unstructured.Unstructured
		// meanwhile and then are what a reader gets before and after the API server answers; both are nil for success.
		meanwhile, then func(error) bool
		// enqueued is whether the reader is by the answer, and removed whether the informer has been ended in the end.
		enqueued, removed bool
	}{
		{name: "another spec, which serves the version", define: definition("Thing", things, 2, "v1", "v1", "v2")},
		{name: "another spec, which does not", define: definition("Thing", things, 2, "v1", "v2"), then: external.NotServed,
			enqueued: true, removed: true},
		{name: "another version", define: definition("Thing", things, 2, "v2", "v1", "v2"), meanwhile: external.NotSynced,
			enqueued: true, removed: true},
		{name: "another version, which is not served", define: definition("Thing", things, 2, "v2", "v1"), meanwhile: external.NotSynced,
			then: external.NotServed, enqueued: true, removed: true},
		{name: "another definition of its name", define: definition("Another", things, 1, "v1", "v1"), meanwhile: external.NotSynced,
			enqueued: true, removed: true},
		{name: "no version", define: definition("Thing", things, 1, "", "v1"), meanwhile: noContract, then: noContract, removed: true},
		{name: "none", meanwhile: external.NotInstalled, then: external.NotInstalled, removed: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newShelf(t.Context(), NewWithT(t))
			defer w.queue.ShutDown()
			gets := func(is func(error) bool) {
				t.Helper()
				if is == nil {
					w.Expect(w.get("Thing")).To(Succeed())
				} else {
					w.Expect(w.get("Thing")).To(Satisfy(is))
				}
			}
			w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
			w.Eventually(w.queue.Len).Should(BeNumerically(">", 0), "the watch has begun")
			w.drained()
			release := w.reader.holds(things)
			w.define(test.define)
			gets(test.meanwhile)
			release()
			if test.enqueued {
				w.enqueued("what was said before does not hold any more")
			}
			w.Eventually(func() bool { return (w.cache.removed.Load() > 0) == test.removed }).Should(BeTrue())
			w.Eventually(w.informers.Openings).Should(BeZero())
			if !test.removed {
				w.Expect(w.drained()).To(BeFalse(), "what was said before holds")
				w.Expect(w.cache.begun.Load()).To(BeEquivalentTo(1))
			}
			defer w.reader.holds(things)()
			gets(test.then)
			w.Expect(w.informers.Openings()).To(BeZero(), "it is examined once")
		})
	}
}

// TestALabelThatChangesForthAndBack while the definition is not answered for ends the informer that was to be kept; there is another then.
func TestALabelThatChangesForthAndBack(t *testing.T) {
	w := newShelf(t.Context(), NewWithT(t))
	defer w.queue.ShutDown()
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	release := w.reader.holds(things)
	w.define(definition("Thing", things, 2, "v1", "v1", "v2"))
	w.Expect(w.get("Thing")).To(Succeed())
	w.Eventually(w.reader.reads.Load).Should(BeEquivalentTo(2))
	w.define(definition("Thing", things, 2, "v2", "v1", "v2"))
	w.define(definition("Thing", things, 2, "v1", "v1", "v2"))
	w.Expect(w.get("Thing")).To(beSyncing)
	w.Eventually(w.reader.reads.Load).Should(BeNumerically(">=", 3))
	w.drained()
	w.clock.Step(external.SyncGrace)
	w.enqueued("that it takes long must be reported")
	w.Expect(w.get("Thing")).To(MatchError(ContainSubstring("has not answered")), "what was left off is no cause")
	release()
	w.Eventually(func() error { return w.get("Thing") }).Should(Succeed())
	w.Expect([]int32{w.cache.begun.Load(), w.cache.removed.Load()}).To(Equal([]int32{2, 1}))
}
