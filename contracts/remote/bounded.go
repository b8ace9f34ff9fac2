package remote

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// maxAnswer bounds what is read of one answer of a target cluster: anyone who owns the kubeconfig Secret decides what answers,
	// and an answer without an end would take the memory of all. A list of 10,000 Nodes in JSON is about as large.
	maxAnswer = 256 << 20
	// maxObject bounds the answers to writes, of which many are under way at once: each is one object, and etcd's are smaller.
	maxObject = 16 << 20
	// maxRefusal bounds the answers that are errors: their text is logged and kept, and repeats one object at most.
	maxRefusal = 1 << 20
	// watchWindow is the time in which a watch may deliver as much. A watch that is cut begins again with a list, which
	// replaces what the cache has; one object of it is bounded by client-go already.
	watchWindow = time.Minute
)

// AnswerTooLargeError means that a target cluster has sent more than is read.
type AnswerTooLargeError struct {
	// URL is what was asked, without the query.
	URL string
	// Limit is how much is read, in bytes.
	Limit int64
	// Window is the time for which the limit holds, for a watch; 0 for other requests.
	Window time.Duration
}

// Error names the limit and what to look at.
func (e *AnswerTooLargeError) Error() string {
	within := ""
	if e.Window > 0 {
		within = " within " + e.Window.String()
	}
	return fmt.Sprintf(
		"the answer of the target cluster to %s is larger than %d MiB%s: check what answers at that address",
		e.URL,
		e.Limit>>20,
		within,
	)
}

// bounded returns a transport that reads no more than the limit of an answer, of one to a write no more than maxObject, of an error
// no more than maxRefusal, and of a watch no more than the limit in a window.
func bounded(limit int64, window time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &boundedTransport{next: next, limit: limit, window: window}
	}
}

type boundedTransport struct {
	next   http.RoundTripper
	limit  int64
	window time.Duration
}

// RoundTrip sends a request, and bounds the body of its answer.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	limit := t.limit
	if request.Method != http.MethodGet {
		limit = min(limit, maxObject)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		limit = min(limit, maxRefusal)
	}
	body := &boundedBody{ReadCloser: response.Body, left: limit, limit: limit, url: request.URL}
	if watching := request.URL.Query().Get("watch"); watching == "true" || watching == "1" {
		body.window, body.began = t.window, time.Now()
	}
	response.Body = body
	return response, nil
}

// WrappedRoundTripper returns the transport below, which client-go closes and cancels.
func (t *boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// boundedBody is read by one goroutine at a time, as bodies are.
type boundedBody struct {
	io.ReadCloser
	left, limit int64
	window      time.Duration
	began       time.Time
	url         *url.URL
}

// Read fails when the limit is exceeded.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.window > 0 && time.Since(b.began) >= b.window {
		b.left, b.began = b.limit, time.Now()
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &AnswerTooLargeError{URL: b.url.Scheme + "://" + b.url.Host + b.url.Path, Limit: b.limit, Window: b.window}
	}
	return n, err
}
