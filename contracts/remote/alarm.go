package remote

import (
	"time"

	"k8s.io/utils/clock"
)

// alarm is a moment at which something is due; the zero time is never.
type alarm struct {
	clock clock.PassiveClock
	at    time.Time
}

func (r *runner) alarm(in time.Duration) alarm {
	return alarm{r.options.Clock, r.options.Clock.Now().Add(in)}
}

// nextLook is when the kubeconfig is read again without a notice that it has changed.
func (r *runner) nextLook() alarm {
	if r.options.KubeconfigInterval == 0 {
		return alarm{clock: r.options.Clock}
	}
	return r.alarm(r.options.KubeconfigInterval)
}

func (a alarm) due() bool { return !a.at.IsZero() && !a.clock.Now().Before(a.at) }

// earliest returns how long it is until the first of some alarms; the first one has a time.
func earliest(first alarm, others ...alarm) time.Duration {
	at := first.at
	for _, other := range others {
		if !other.at.IsZero() && other.at.Before(at) {
			at = other.at
		}
	}
	return max(0, at.Sub(first.clock.Now()))
}
