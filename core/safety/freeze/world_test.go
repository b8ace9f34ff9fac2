package freeze

import (
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var cluster, other = client.ObjectKey{Namespace: "a", Name: "c"}, client.ObjectKey{Namespace: "a", Name: "d"}

// world is a core with two target clusters.
type world struct {
	*Freezer
	clock *testingclock.FakeClock
	// down is since when a target cluster does not answer.
	down    map[client.ObjectKey]time.Time
	notify  []func(client.ObjectKey)
	changes []client.ObjectKey
	// skew is what the wall clock is ahead by.
	skew time.Duration
}

func (w *world) Unanswered(key client.ObjectKey) (time.Time, string) {
	if since := w.down[key]; !since.IsZero() {
		return since, "connection refused"
	}
	return time.Time{}, ""
}

func (w *world) OnConnectivity(f func(client.ObjectKey)) { w.notify = append(w.notify, f) }

// newWorld starts a core of which a predecessor was at work until gap before; a negative one is not known.
func newWorld(gap time.Duration) *world {
	w := &world{clock: testingclock.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)), down: map[client.ObjectKey]time.Time{}}
	w.Freezer = New(DefaultOptions(), w.clock, w)
	begin := w.clock.Now()
	w.Freezer.jumps.elapsed = func(now time.Time) time.Duration { return now.Sub(begin) - w.skew }
	w.Freezer.start.known = true
	if gap >= 0 {
		w.Freezer.start.last = begin.Add(-gap)
	}
	w.OnChange(func(key client.ObjectKey) { w.changes = append(w.changes, key) })
	return w
}

func (w *world) lose(key client.ObjectKey) {
	w.down[key] = w.clock.Now()
	w.turn(key)
}

func (w *world) restore(key client.ObjectKey) {
	delete(w.down, key)
	w.turn(key)
}

func (w *world) turn(key client.ObjectKey) {
	for _, notify := range w.notify {
		notify(key)
	}
}

func (w *world) jump(by time.Duration) {
	w.skew += by
	w.clock.SetTime(w.clock.Now().Add(by))
}
