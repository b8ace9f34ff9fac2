package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
)

// limited returns a config with timeouts: reads for reads except watches, changes for all requests that may change something.
func limited(config *rest.Config, reads, changes time.Duration) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limiter{next, reads, changes} })
	return config
}

type limiter struct {
	next           http.RoundTripper
	reads, changes time.Duration
}

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") != "" {
		return l.next.RoundTrip(request)
	}
	limit := l.reads
	if request.Method != http.MethodGet {
		limit = l.changes
	}
	late := fmt.Errorf("no response within %s", limit)
	ctx, cancel := context.WithTimeoutCause(request.Context(), limit, late)
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		if errors.Is(context.Cause(ctx), late) {
			err = late
		}
		cancel()
		return nil, err
	}
	response.Body = &ending{response.Body, cancel}
	return response, nil
}

// ending is a body that cancels the context of its request when it is closed.
type ending struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (e *ending) Close() error {
	defer e.cancel()
	return e.ReadCloser.Close()
}
