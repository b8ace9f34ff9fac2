package machine

import (
	"errors"
	"time"

	"millwright.dev/core/outcome"
	"millwright.dev/core/remote"
)

// answerSettling is how long nothing is said about a request that the target cluster has not answered yet: normally that
// is over in a moment.
const answerSettling = 2 * time.Second

// soonAnswered says whether an error means no more than that a request to the target cluster was sent a moment ago, and how
// to wait then; the answer itself wakes the Machine.
func (s *scope) soonAnswered(err error) (end outcome.Outcome, soon bool) {
	var closed *remote.NotConnectedError
	if errors.As(err, &closed) {
		// The loss of the connection is an event of its own.
		s.quiet = len(s.told) == 0
		return outcome.Wait(), true
	}
	pending := unanswered(err)
	if pending == nil {
		return outcome.Continue(), false
	}
	rest := pending.Since.Add(answerSettling).Sub(s.now)
	if rest <= 0 {
		return outcome.Continue(), false
	}
	s.quiet = len(s.told) == 0
	return outcome.WaitFor(rest), true
}

// unanswered returns what the target cluster has not answered, nil when the error is another one.
func unanswered(err error) *remote.PendingError {
	var pending *remote.PendingError
	errors.As(err, &pending)
	return pending
}
