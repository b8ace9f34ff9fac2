package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// soon is after how long a probe that was not answered is followed by another one, which doubles until the next interval: whether it
	// was more than a moment is to be known before replacements are frozen for it.
	soon = time.Second
	// answerTimeout is for how long a probe may be under way until it counts as not answered.
	answerTimeout = 2 * time.Second
)

// probes reports when a connection is probed, and when it is lost.
type probes struct {
	r *runner
	// regular is the probe of each interval, extra one before that; the zero time for none.
	regular, extra alarm
	// asked is when it was probed last.
	asked time.Time
	// failures counts those of the intervals alone: a connection is not lost sooner because it is looked at more closely.
	failures int
	// sooner has the delays of extra probes, refused those after a refusal.
	sooner, refused *wait.Backoff
}

func (r *runner) newProbes() *probes {
	return &probes{
		r: r, regular: r.alarm(r.options.ProbeInterval), extra: alarm{clock: r.options.Clock}, asked: r.options.Clock.Now(),
		sooner: r.options.probeBackoff(), refused: r.options.dialBackoff(),
	}
}

// probeBackoff returns the delays of extra probes. Beyond the interval there are none.
func (o Options) probeBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: soon, Factor: 2, Jitter: 0.1, Steps: 20, Cap: o.ProbeInterval}
}

func (p *probes) due() bool { return p.regular.due() || p.extra.due() }

// suspect has the connection probed before it is time, at most once a second, unless it is known that probes are not answered.
func (p *probes) suspect() {
	if since, _ := p.r.unansweredSince(); since.IsZero() {
		p.extra.at = p.asked.Add(soon)
	}
}

// probe probes, and returns why the connection is lost; refused reports that it is not, but that its credentials were refused.
func (p *probes) probe(ctx context.Context, connection *Connection) (refused bool, lost error) {
	options, regular := p.r.options, p.regular.due()
	p.asked = options.Clock.Now()
	err := p.r.ask(ctx, connection)
	p.extra.at = time.Time{}
	if regular {
		p.regular = p.r.alarm(options.ProbeInterval)
	}
	if err == nil {
		p.failures, p.sooner, p.refused = 0, options.probeBackoff(), options.dialBackoff()
		p.r.answered()
		return false, nil
	}
	if regular {
		if p.failures++; p.failures >= options.ProbeFailures {
			return false, err
		}
	}
	p.r.failed(err, p.asked)
	var not *NotConnectedError
	if errors.As(err, &not) && not.Reason == Unauthorized {
		// An API server whose authenticator or authorizer is away for a moment refuses all requests. Each of these counts: it is not an
		// API server that does not answer, and another kubeconfig is to be tried soon.
		p.regular = p.r.alarm(min(p.refused.Step(), options.ProbeInterval))
		return true, nil
	}
	p.extra = p.r.alarm(p.sooner.Step())
	return false, nil
}

// ask probes once. While the answer takes long, it counts as not given.
func (r *runner) ask(ctx context.Context, connection *Connection) error {
	asked, answer := r.options.Clock.Now(), make(chan error, 1)
	go func() { answer <- connection.answer(ctx, r.options.ProbeTimeout) }()
	timer := r.options.Clock.NewTimer(answerTimeout)
	defer timer.Stop()
	select {
	case err := <-answer:
		return err
	case <-timer.C():
		err := fmt.Errorf("a probe was not answered within %s", answerTimeout)
		r.failed(connection.Failed(Unreachable, "the API server does not answer", err), asked)
	}
	return <-answer
}

// watchOver probes until the connection is lost or its kubeconfig has changed.
func (r *runner) watchOver(ctx context.Context) error {
	connection, _ := r.state()
	p, look, again := r.newProbes(), r.nextLook(), r.options.dialBackoff()
	for {
		asked, suspected := r.pause(ctx, earliest(p.regular, p.extra, look), r.suspected)
		if ctx.Err() != nil {
			return &NotConnectedError{Reason: NotDialledYet, Message: "the connection was closed"}
		}
		if suspected {
			p.suspect()
		}
		if asked || look.due() {
			rotated, unread := r.rotated(ctx, connection)
			switch {
			case rotated:
				return kubeconfigChanged()
			case unread:
				// There is no second notice of the change.
				look = r.alarm(again.Step())
			default:
				look, again = r.nextLook(), r.options.dialBackoff()
			}
		}
		if !p.due() {
			continue
		}
		refused, err := p.probe(ctx, connection)
		if err != nil {
			return err
		}
		if refused {
			// It may have been rotated.
			look = r.alarm(0)
		}
	}
}
