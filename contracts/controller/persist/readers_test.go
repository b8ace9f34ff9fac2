package persist_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/controller/persist"
)

// TestAnotherReaderTakesNoEvent checks that a reconcile which was turned away is woken by the event of the write, although another
// controller, whose handler was called first, has seen the version in the cache before.
func TestAnotherReaderTakesNoEvent(t *testing.T) {
	g := NewWithT(t)
	versions := persist.Versions{}
	passes := versions.Awaited()
	g.Expect(versions.Lag(versioned("9"))).To(BeZero(), "nothing written yet")
	versions.Wrote(versioned("10"))
	g.Expect(versions.Lag(versioned("9"))).To(BeNumerically(">", 0))
	g.Expect(passes.Update(event.UpdateEvent{ObjectOld: versioned("8"), ObjectNew: versioned("10")})).
		To(BeFalse(), "no reconcile was turned away")

	versions.Wrote(versioned("11"))
	g.Expect(versions.Behind(versioned("10"))).To(BeNumerically(">", 0))
	g.Expect(versions.Lag(versioned("11"))).To(BeZero())
	g.Expect(versions.Behind(versioned("10"))).To(BeNumerically(">", 0), "nothing is forgotten")
	g.Expect(passes.Update(event.UpdateEvent{ObjectOld: versioned("10"), ObjectNew: versioned("11")})).To(BeTrue())
}

// TestAnotherWriteLosesNoEvent: a reconcile that was turned away because of one write is woken by the event of the next one, also when
// that has changed nothing, so that the version is still the same.
func TestAnotherWriteLosesNoEvent(t *testing.T) {
	for _, second := range []string{"10", "11"} {
		t.Run(second, func(t *testing.T) {
			g := NewWithT(t)
			versions := persist.Versions{}
			versions.Wrote(versioned("10"))
			g.Expect(versions.Behind(versioned("9"))).To(BeNumerically(">", 0))
			versions.Wrote(versioned(second))
			g.Expect(versions.Awaited().Update(event.UpdateEvent{ObjectOld: versioned("9"), ObjectNew: versioned(second)})).To(BeTrue())
		})
	}
}

// TestNoReaderIsTurnedAwayPermanently simulates a controller that writes the status of its objects, and another one that reads them and
// writes their spec, with a cache and with handlers that follow at random. Once all is delivered no refused reconcile still waits.
func TestNoReaderIsTurnedAwayPermanently(t *testing.T) {
	for seed := range uint64(20000) {
		w := &readersWorld{random: rand.New(rand.NewPCG(seed, 1)), queued: true, versions: &persist.Versions{}}
		for range 40 {
			w.step()
		}
		for w.answer > 0 || w.handled < len(w.changes) {
			w.controllerAnswered()
			w.cacheFollows()
			w.handlersFollow()
		}
		if w.turnedAway && !w.queued {
			t.Fatalf("seed %d: a reconcile was turned away, and no event of %v wakes it", seed, w.changes)
		}
	}
}

type readersWorld struct {
	random   *rand.Rand
	versions *persist.Versions
	// changes has for each version of the object whether it changed the spec.
	changes []bool
	// cached and handled are the versions that the cache and the handlers have.
	cached, handled int
	// answer is the version that the answer to the controller's write has, zero for none on its way.
	answer int
	// queued and turnedAway are of the controller: it has been woken, and its last reconcile was turned away.
	queued, turnedAway bool
	// read is a version that the other controller has read, maybe long ago.
	read int
}

func at(version int) string { return strconv.Itoa(100 + version) }

func (w *readersWorld) step() {
	steps := []func(){
		w.reconcile, w.reconcile, w.controllerAnswered, w.cacheFollows, w.handlersFollow,
		func() { w.read = w.cached },
		func() { w.versions.Lag(versioned(at(w.read))) },
		w.otherWrites,
	}
	steps[w.random.IntN(len(steps))]()
}

// reconcile is one of the controller, which runs again only when the answer to its write has come.
func (w *readersWorld) reconcile() {
	if !w.queued || w.answer > 0 {
		return
	}
	w.queued = false
	if w.turnedAway = w.versions.Behind(versioned(at(w.cached))) > 0; w.turnedAway {
		return
	}
	if w.random.IntN(2) == 0 {
		w.changes = append(w.changes, false)
		w.answer = len(w.changes)
		// Something else, such as a conflict, has it look again.
		w.queued = w.random.IntN(2) == 0
	}
}

func (w *readersWorld) controllerAnswered() {
	if w.answer > 0 {
		w.versions.Wrote(versioned(at(w.answer)))
		w.answer = 0
	}
}

// otherWrites writes the spec, or what is there already.
func (w *readersWorld) otherWrites() {
	if w.random.IntN(2) == 0 {
		w.changes = append(w.changes, true)
	}
	w.versions.Wrote(versioned(at(len(w.changes))))
}

func (w *readersWorld) cacheFollows() { w.cached = min(w.cached+1, len(w.changes)) }

func (w *readersWorld) handlersFollow() {
	if w.handled == w.cached {
		return
	}
	w.handled++
	awaited := w.versions.Awaited().Update(event.UpdateEvent{
		ObjectOld: versioned(at(w.handled - 1)), ObjectNew: versioned(at(w.handled)),
	})
	w.queued = w.queued || awaited || w.changes[w.handled-1]
}

// TestAWaitWithoutAnEventIsCounted: a reconcile that no event has enqueued again, whatever the cache shows by then.
func TestAWaitWithoutAnEventIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		shown string
		event bool
		after time.Duration
		want  float64
	}{
		"the cache is still behind":              {"9", false, 30 * time.Second, 1},
		"the cache has caught up, without event": {"10", false, 30 * time.Second, 1},
		"the event has come":                     {"10", true, 30 * time.Second, 0},
		"something else was sooner":              {"10", false, 30*time.Second - 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			now := clocktesting.NewFakePassiveClock(time.Now())
			versions := persist.Versions{Clock: now}
			before := persist.ExpiredWaits("Machine")
			versions.Wrote(versioned("10"))
			g.Expect(versions.Behind(versioned("9"))).To(Equal(30 * time.Second))
			if test.event {
				g.Expect(versions.Awaited().Update(event.UpdateEvent{ObjectOld: versioned("9"), ObjectNew: versioned("10")})).To(BeTrue())
			}
			now.SetTime(now.Now().Add(test.after))
			g.Expect(versions.Behind(versioned(test.shown))).To(BeZero())
			g.Expect(persist.ExpiredWaits("Machine") - before).To(Equal(test.want))
		})
	}
}
