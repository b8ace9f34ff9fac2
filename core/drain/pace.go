package drain

import (
	"net/http"
	"sync"
	"time"
)

const (
	// maxStarting is how many requests of each lane may wait for the head of their answer at once. A connection has room
	// for a hundred watches; when it is full each request that comes opens another one, with a handshake that is dearer
	// for the API server than the request. Without a bound the drains of a thousand Nodes open thousands.
	maxStarting = 16
	// maxStart is how long a request may hold its place: one that hangs does not hold up the others for longer.
	maxStart = 2 * time.Second
)

// pace lets a bounded number of requests begin at once. Watches and other requests have lanes of their own, so that
// neither holds up the other.
type pace struct {
	next           http.RoundTripper
	watches, other chan struct{}
}

var _ http.RoundTripper = &pace{}

func newPace(next http.RoundTripper) http.RoundTripper {
	return &pace{next: next, watches: make(chan struct{}, maxStarting), other: make(chan struct{}, maxStarting)}
}

// RoundTrip sends a request when there is a place for it.
func (p *pace) RoundTrip(request *http.Request) (*http.Response, error) {
	lane := p.other
	if request.URL.Query().Get("watch") != "" {
		lane = p.watches
	}
	select {
	case lane <- struct{}{}:
	case <-request.Context().Done():
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, request.Context().Err()
	}
	leave := sync.OnceFunc(func() { <-lane })
	defer leave()
	overdue := time.AfterFunc(maxStart, leave)
	defer overdue.Stop()
	return p.next.RoundTrip(request)
}

// WrappedRoundTripper lets idle connections be closed.
func (p *pace) WrappedRoundTripper() http.RoundTripper { return p.next }
