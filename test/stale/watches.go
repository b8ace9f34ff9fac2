package stale

import (
	"io"
	"net/http"
	"path"
	"sync"
)

// Watches is a network on which the watch events of one resource can be held back: what is sent meanwhile arrives when they
// flow again, in its order. So a cache is stale as with a slow API server, for all its readers, and catches up with the
// held events. Other requests pass.
type Watches struct {
	// Resource is the plural name.
	Resource string

	mu   sync.Mutex
	held chan struct{}
}

// Hold keeps events back from now until Flow.
func (w *Watches) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = make(chan struct{})
	}
}

// Flow ends Hold.
func (w *Watches) Flow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// Wrap returns a transport that holds events back, and otherwise behaves as the inner one.
func (w *Watches) Wrap(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := inner.RoundTrip(request)
		if err == nil && request.URL.Query().Get("watch") != "" && path.Base(request.URL.Path) == w.Resource {
			response.Body = &heldBody{ReadCloser: response.Body, watches: w, closed: make(chan struct{})}
		}
		return response, err
	})
}

func (w *Watches) now() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// heldBody is the answer to a watch.
type heldBody struct {
	io.ReadCloser
	watches *Watches
	once    sync.Once
	closed  chan struct{}
}

// Read returns what has been read when events flow.
func (b *heldBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	for held := b.watches.now(); held != nil; held = b.watches.now() {
		select {
		case <-held:
		case <-b.closed:
			return 0, io.EOF
		}
	}
	return n, err
}

// Close implements io.Closer.
func (b *heldBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}
