package freeze

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// start is what is known of the time before this process: the lease of the cores says when one was last at work.
type start struct {
	// at is the start of this process.
	at time.Time
	// last is when a core renewed the lease last, before this process; zero if that is not known.
	last time.Time
	// known is true once the lease was read, or is known not to be there, and knownAt is when. awaited is why it could not be read yet.
	known   bool
	knownAt time.Time
	awaited string
	// briefly means that a core was at work after last, and ended within the grace.
	briefly bool
}

// gap is for how long no core was at work; ok is false when that is not known.
func (s start) gap() (gap time.Duration, ok bool) { return s.at.Sub(s.last), !s.last.IsZero() }

// away reports whether no core was at work for longer than the timeout, or might have been.
func (s start) away(timeout time.Duration) bool {
	gap, ok := s.gap()
	return !ok || gap > timeout
}

// resumed is when cores were at work again; zero if they always were.
func (s start) resumed(timeout time.Duration) time.Time {
	if s.known && !s.away(timeout) {
		return time.Time{}
	}
	return s.at
}

// state is the state that follows for a Cluster, which was examined for signs of a restore, or not.
func (s start) state(now time.Time, o Options, examined bool) State {
	if s.known && !s.away(o.Timeout) {
		return State{}
	}
	_, ok := s.gap()
	until := s.at.Add(o.Grace)
	before := "it is not known whether a core was running before this one, which started at " + stamp(s.at)
	if ok {
		before = fmt.Sprintf(awayFormat, stamp(s.last), stamp(s.at))
	}
	if s.briefly {
		before += ", except for one that ran only briefly"
	}
	switch {
	case s.awaited != "":
		return State{Reason: CoreWasAwayReason, Since: s.at, Message: "No Machine is replaced until the lease of the core has been read, " +
			"which shows whether one was running before this one: " + s.awaited}
	case now.Before(until):
		return State{Reason: CoreWasAwayReason, Since: s.at, Until: until, Routine: !s.known, Message: fmt.Sprintf(
			"No Machine is replaced until %s: %s, and Nodes get time to report", stamp(until), before)}
	case s.known && o.RestoreGrace > 0 && !examined:
		return State{Reason: CoreWasAwayReason, Since: s.at, Message: fmt.Sprintf(
			"No Machine is replaced until the Nodes have been compared with the Machines: %s", before)}
	}
	return State{}
}

// awayFormat says from when to when no core was at work.
const awayFormat = "no core was running from %s to %s"

// lastAtWork is when a core was last at work according to the message of a state; zero if that does not say.
func lastAtWork(message string) time.Time {
	prefix, _, _ := strings.Cut(awayFormat, "%s")
	_, rest, _ := strings.Cut(message, prefix)
	text, _, _ := strings.Cut(rest, " ")
	last, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return last
}

// leaseTimeout bounds the reading of the lease: the start of the core must not hang on it.
const leaseTimeout = 5 * time.Second

// AwayAnnotation on the lease says from when to when no core was at work, beside the lease itself: with the first renewal that is lost,
// and the core may end before it has written anything else.
const AwayAnnotation = "safety.millwright.dev/core-was-away"

// ReadLease reads, before this process asks for the lease itself, when a core last had it. Of a core that had it for less than the grace
// since a time without one, that time is what counts. If there is none, or one that was taken after this process had started, it is unknown
// of the time before. If the API server does not say, nothing is replaced until Probe has read it.
func (f *Freezer) ReadLease(ctx context.Context, reader client.Reader, key client.ObjectKey) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := reader.Get(ctx, key, lease)
	if client.IgnoreNotFound(err) != nil {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.start.awaited = err.Error()
		return errors.Wrap(err, "reading the lease of the core")
	}
	if f.takeLease(lease) {
		f.changed(client.ObjectKey{})
	}
	return nil
}

// takeLease takes in what the lease says, and reports whether that was awaited. An empty one is none.
func (f *Freezer) takeLease(lease *coordinationv1.Lease) (awaited bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	awaited = f.start.awaited != ""
	f.start.known, f.start.knownAt, f.start.awaited = true, f.clock.Now(), ""
	if lease.Spec.RenewTime == nil || lease.Spec.AcquireTime != nil && !lease.Spec.AcquireTime.Time.Before(f.start.at) {
		return awaited
	}
	f.start.last = lease.Spec.RenewTime.Time
	from, to, ok := parseAway(lease.Annotations[AwayAnnotation])
	if ok && !f.start.away(f.options.Timeout) && f.start.last.Sub(to) < f.options.Grace {
		f.start.last, f.start.briefly = from, true
	}
	return awaited
}

// begun is when this process has started.
func (f *Freezer) begun() time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.start.at
}

// leaseAwaited reports whether the lease could not be read yet.
func (f *Freezer) leaseAwaited() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.start.awaited != ""
}

// RecordAbsence writes to the lease that no core was at work, before this process asks for it. If that is refused, it is forgotten with
// this process, unless that says it in the conditions of Clusters first.
func (f *Freezer) RecordAbsence(ctx context.Context, writer client.Writer, key client.ObjectKey) error {
	f.mutex.Lock()
	start := f.start
	f.mutex.Unlock()
	if start.last.IsZero() || !start.away(f.options.Timeout) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, AwayAnnotation, stamp(start.last)+awaySeparator+stamp(start.at))
	return errors.Wrap(writer.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(patch))), "patching the lease of the core")
}

const awaySeparator = "/"

// parseAway reads AwayAnnotation. A time that ends before it begins is none.
func parseAway(text string) (from, to time.Time, ok bool) {
	first, second, _ := strings.Cut(text, awaySeparator)
	from, err := time.Parse(time.RFC3339, first)
	to, err2 := time.Parse(time.RFC3339, second)
	return from, to, err == nil && err2 == nil && from.Before(to)
}
