package remote

import (
	"context"
	"errors"
	"net/http"
)

// noticing returns a transport that calls suspect when a request gets no answer, be it one of a cache that begins its watch again.
func noticing(suspect func()) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &noticingTransport{next: next, suspect: suspect}
	}
}

type noticingTransport struct {
	next    http.RoundTripper
	suspect func()
}

// RoundTrip sends a request. That the caller has given up proves nothing.
func (t *noticingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil && !errors.Is(request.Context().Err(), context.Canceled) {
		t.suspect()
	}
	return response, err
}

// WrappedRoundTripper returns the transport below, which client-go closes and cancels.
func (t *noticingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// suspect has the API server probed soon, while the connection is in use: before that its probe has an answer of its own, and what was
// sent over a lost one proves nothing about the next. It never blocks.
func (c *Connection) suspect() {
	if c.runner == nil || !closed(c.handedOut) || closed(c.ended) {
		return
	}
	select {
	case c.runner.suspected <- struct{}{}:
	default:
	}
}

func closed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
