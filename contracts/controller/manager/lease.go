package manager

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// leases is the path of leases.
const leases = "/apis/coordination.k8s.io/"

// electing returns a config for the requests of the leader election. Once the lease could not be renewed for as long as is tried,
// client-go still tries to give it up before it says that the lease is lost: an API server that hangs would let the process work on
// meanwhile, beyond the end of its lease.
func electing(rc *rest.Config, settings ctrl.Options) *rest.Config {
	limit := min(*settings.RenewDeadline+*settings.RetryPeriod, *settings.LeaseDuration)
	rc = rest.CopyConfig(rc)
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &leaseTransport{next: next, limit: limit, clock: clock.RealClock{}}
	})
	return rc
}

// leaseTransport sends requests about a lease. Those of its holder end when it has not renewed the lease for as long as the limit says.
type leaseTransport struct {
	next  http.RoundTripper
	limit time.Duration
	clock clock.WithDelayedExecution

	mutex sync.Mutex
	// renewed is when the latest request was sent that renewed the lease; zero while it is another's.
	renewed time.Time
}

// RoundTrip implements http.RoundTripper.
func (t *leaseTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(request.URL.Path, leases) {
		return t.next.RoundTrip(request)
	}
	sent := t.clock.Now()
	ctx, cancel := context.WithCancelCause(request.Context())
	if end := t.end(); !end.IsZero() {
		lost := errors.New("the lease could not be renewed in time")
		if !end.After(sent) {
			cancel(lost)
			if request.Body != nil {
				_ = request.Body.Close() // A RoundTripper closes it, also on errors.
			}
			return nil, lost
		}
		timer := t.clock.AfterFunc(end.Sub(sent), func() { cancel(lost) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if request.Method != http.MethodGet && response.StatusCode < http.StatusMultipleChoices {
		t.mutex.Lock()
		t.renewed = sent
		t.mutex.Unlock()
	}
	response.Body = &endingBody{response.Body, func() { cancel(nil) }}
	return response, nil
}

// end is when the lease is lost; zero while it is another's.
func (t *leaseTransport) end() time.Time {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.renewed.IsZero() {
		return time.Time{}
	}
	return t.renewed.Add(t.limit)
}

// WrappedRoundTripper returns the transport below, which client-go closes and cancels.
func (t *leaseTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// endingBody ends something when it is closed.
type endingBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
