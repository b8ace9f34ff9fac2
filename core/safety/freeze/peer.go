package freeze

import (
	"fmt"
	"time"
)

// peer is what is known of one API server.
type peer struct {
	// reason is that of the state while the API server does not answer, name what it is called in messages.
	reason, name string
	// failing is since when it does not answer; zero while it does. why is what came of the latest attempt.
	failing time.Time
	why     string
	// frozen is since when the latest time without an answer has lasted that was longer than the timeout, recovered when it ended;
	// both zero if there was none, or it was dismissed.
	frozen, recovered time.Time
}

// failed takes in that the API server has not answered since that time.
func (p *peer) failed(since time.Time, why string) {
	p.why = why
	if p.failing.IsZero() || since.Before(p.failing) {
		p.failing = since
	}
}

// answered takes in that the API server answers.
func (p *peer) answered(now time.Time, timeout time.Duration) {
	if !p.failing.IsZero() && now.Sub(p.failing) >= timeout {
		p.frozen, p.recovered = p.failing, now
	}
	p.failing, p.why = time.Time{}, ""
}

// state is the state that follows.
func (p *peer) state(now time.Time, o Options) State {
	switch until := p.recovered.Add(o.Grace); {
	case !p.failing.IsZero() && now.Sub(p.failing) >= o.Timeout:
		return State{Reason: p.reason, Since: p.failing, Message: fmt.Sprintf(
			"No Machine is replaced: the API server of the %s has not answered since %s: %s", p.name, stamp(p.failing), p.why)}
	case !p.recovered.IsZero() && now.Before(until):
		return State{Reason: RecoveringReason, Since: p.frozen, Until: until, Message: fmt.Sprintf(
			"No Machine is replaced until %s: the API server of the %s did not answer from %s to %s, and Nodes get time to report",
			stamp(until), p.name, stamp(p.frozen), stamp(p.recovered))}
	case !p.failing.IsZero():
		return State{Next: p.failing.Add(o.Timeout)}
	}
	return State{}
}

// stamp is a time in messages.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
