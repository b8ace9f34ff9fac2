package manager

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// answerTimeout is for how long a request waits for the next bytes of its answer. API servers end a request themselves, by
// default after a minute (--request-timeout); what lies between may keep one for ever, and with it the worker that sent it.
const answerTimeout = 90 * time.Second

// answering returns a config whose requests end when there is no answer, or when it does not continue. Watches do not: their informers
// begin them again, see rewatch.
func answering(rc *rest.Config) *rest.Config {
	rc = rest.CopyConfig(rc)
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &answeringTransport{next: next, timeout: answerTimeout, clock: clock.RealClock{}}
	})
	return rc
}

type answeringTransport struct {
	next    http.RoundTripper
	timeout time.Duration
	clock   clock.WithDelayedExecution
}

// RoundTrip implements http.RoundTripper. The error of a request that was ended is context.DeadlineExceeded, with a cause.
func (t *answeringTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if isWatch(request) {
		return t.next.RoundTrip(request)
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	unanswered := errors.Wrapf(context.DeadlineExceeded, "the API server sent nothing for %s", t.timeout)
	timer := t.clock.AfterFunc(t.timeout, func() { cancel(unanswered) })
	end := func() {
		timer.Stop()
		cancel(nil)
	}
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		err = causeOf(ctx, err, unanswered)
		end()
		return nil, err
	}
	timer.Reset(t.timeout)
	response.Body = &answeringBody{
		endingBody: endingBody{response.Body, end},
		progress:   func() { timer.Reset(t.timeout) },
		explain:    func(err error) error { return causeOf(ctx, err, unanswered) },
	}
	return response, nil
}

// WrappedRoundTripper returns the transport below, which client-go closes and cancels.
func (t *answeringTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isWatch reports whether the answer to a request has no end.
func isWatch(request *http.Request) bool {
	switch request.URL.Query().Get("watch") {
	case "", "0", "false":
		return false
	}
	return true
}

// causeOf is the cause if the request ended by it, and the error otherwise.
func causeOf(ctx context.Context, err, cause error) error {
	if errors.Is(context.Cause(ctx), cause) {
		return cause
	}
	return err
}

// answeringBody is the body of an answer that must continue.
type answeringBody struct {
	endingBody
	progress func()
	explain  func(error) error
}

// Read implements io.Reader.
func (b *answeringBody) Read(p []byte) (int, error) {
	n, err := b.endingBody.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, b.explain(err)
	}
	if n > 0 {
		b.progress()
	}
	return n, err
}
