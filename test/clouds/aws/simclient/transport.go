package simclient

import (
	"bytes"
	"io"
	"net/http"

	"github.com/pkg/errors"
)

// HTTPClient is an HTTP client for the HTTPClient option of an SDK client that talks to a simulator.
//
// The SDK closes the body of a request as soon as the answer has begun. When that is before net/http's
// writer has looked for the end of the body, which only happens on loopback, the writer takes the closed body for a
// failure and drops the connection, answer and all; the SDK then tries again, and a test that counts
// calls finds one too many. With a body that net/http knows to be in memory there is no such look.
//
// Each adjust changes the transport beneath, for example how it connects.
func HTTPClient(adjust ...func(*http.Transport)) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	for _, a := range adjust {
		a(transport)
	}
	return &http.Client{
		Transport: memoryBodies{next: transport},
		// As the SDK's own client: an API does not redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type memoryBodies struct{ next http.RoundTripper }

// RoundTrip sends the request with its body read into memory.
func (m memoryBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return m.next.RoundTrip(r)
	}
	raw, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, errors.Wrap(err, "reading the body of a request")
	}
	copied := *r
	copied.Body, copied.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return m.next.RoundTrip(&copied)
}
