package freeze

import (
	"fmt"
	"time"
)

// history is what is known of the API server of one target cluster.
type history struct {
	// asked is when a controller first asked about the Cluster. How the API server answered before is not known.
	asked time.Time
	// answered is true once the API server has answered this process.
	answered bool
	// failing is since when the API server has not answered; zero while it answers. cause is the latest error.
	failing time.Time
	cause   string
	// down is when the latest outage began that was longer than the timeout, recovered when it ended; both zero if there was none.
	down, recovered time.Time
}

// observe returns the history after the API server has not answered since a time; the zero time means that it answers.
func (h history) observe(now, since time.Time, cause string, o Options) history {
	if since.IsZero() {
		if !h.failing.IsZero() && now.Sub(h.failing) >= o.Timeout {
			h.down, h.recovered = h.failing, now
		}
		h.answered, h.failing, h.cause = true, time.Time{}, ""
		return h
	}
	if !h.answered && since.Before(h.asked) {
		since = h.asked
	}
	if h.failing.IsZero() || since.Before(h.failing) {
		h.failing = since
	}
	h.cause = cause
	return h
}

// decide returns the state that follows from a history.
func decide(h history, now time.Time, o Options) State {
	timeout, graceEnd := h.failing.Add(o.Timeout), h.recovered.Add(o.Grace)
	switch {
	case !h.failing.IsZero() && !now.Before(timeout):
		return State{Reason: TargetAPIServerUnreachableReason, Since: h.failing, Message: fmt.Sprintf(
			"No Machine is replaced: the API server of the target cluster has not answered since %s: %s", stamp(h.failing), h.cause)}
	case !h.failing.IsZero() && !h.answered:
		return State{Reason: TargetAPIServerUnreachableReason, Since: h.failing, Until: timeout, Starting: true, Message: fmt.Sprintf(
			"No Machine is replaced: the API server of the target cluster has not answered this core yet, which began to ask at %s: %s",
			stamp(h.failing), h.cause)}
	case !h.recovered.IsZero() && now.Before(graceEnd):
		return State{Reason: RecoveringReason, Since: h.down, Until: graceEnd, Message: fmt.Sprintf(
			"No Machine is replaced until %s: the API server of the target cluster did not answer from %s to %s, and Nodes get time to report",
			stamp(graceEnd), stamp(h.down), stamp(h.recovered))}
	case !h.failing.IsZero():
		return State{Next: timeout}
	}
	return State{}
}

// notBefore returns the end of the latest grace; a time far in the future while the API server does not answer.
func notBefore(h history, now time.Time, o Options) time.Time {
	switch state := decide(h, now, o); {
	case state.Reason == TargetAPIServerUnreachableReason:
		return now.Add(never)
	case h.recovered.IsZero():
		return time.Time{}
	}
	return h.recovered.Add(o.Grace)
}

// never is longer than any outage.
const never = 100 * 365 * 24 * time.Hour

// stamp formats a time for messages.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
