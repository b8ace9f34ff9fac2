// Package rewatch makes informers that continue soon after an outage of their API server.
//
// client-go's own wait ever longer between their attempts, up to a minute once the server has been away for half of
// one, and nothing reports that it is back. Here the requests themselves are tried again, every few seconds as long as the
// server cannot be reached, so that the informer never comes to that.
package rewatch

import (
	"context"
	"errors"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// The delay between two attempts doubles from minDelay to maxDelay, and is lengthened at random by up to a half, so that
// the informers of a process do not come back in step.
const (
	minDelay = 500 * time.Millisecond
	maxDelay = 4 * time.Second
	jitter   = 0.5
)

// NewInformer makes an informer like cache.NewSharedIndexInformer; it fits cache.Options.NewInformer of controller-runtime.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(Retrying(lw), example, resync, indexers)
}

// listLimit is how long a list may take, openLimit how long the answer to a watch may, before its first event, and watchGrace how much
// longer than was asked for a watch may last. An API server that hangs would keep them open for ever, and the cache would stand still
// without a word.
var listLimit, openLimit, watchGrace = 5 * time.Minute, 30 * time.Second, 30 * time.Second

// Retrying returns a ListerWatcher whose requests are tried again while the API server cannot be reached, or when it does
// not come to an end with them. All other errors are passed on, for the informer to do with them what it does.
func Retrying(lw cache.ListerWatcher) cache.ListerWatcher {
	return &retrying{ListerWatcher: lw, next: cache.ToListerWatcherWithContext(lw)}
}

// retrying has the methods without a context of what it wraps; informers use those below.
type retrying struct {
	cache.ListerWatcher
	next cache.ListerWatcherWithContext
}

// ListWithContext implements cache.ListerWithContext.
func (p *retrying) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return again(ctx, func() (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, listLimit)
		defer cancel()
		return p.next.ListWithContext(ctx, options)
	})
}

// WatchWithContext implements cache.WatcherWithContext.
func (p *retrying) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return again(ctx, func() (watch.Interface, error) {
		var lasting time.Duration
		if options.TimeoutSeconds != nil {
			lasting = time.Duration(*options.TimeoutSeconds)*time.Second + watchGrace
		}
		return Open(ctx, openLimit, lasting, func(ctx context.Context) (watch.Interface, error) {
			return p.next.WatchWithContext(ctx, options)
		})
	})
}

// delays are those between the attempts of one request.
func delays() wait.Backoff {
	return wait.Backoff{Duration: minDelay, Factor: 2, Jitter: jitter, Steps: 10, Cap: maxDelay}
}

// again sends a request until the API server answers, or ctx ends.
func again[T any](ctx context.Context, send func() (T, error)) (T, error) {
	backoff := delays()
	for attempt := 0; ; attempt++ {
		result, err := send()
		if err == nil || !unreachable(err) {
			return result, err
		}
		if attempt == 0 {
			klog.FromContext(ctx).Info("The API server cannot be reached; the watch is tried again every few seconds", "err", err)
		}
		delay := time.NewTimer(backoff.Step())
		select {
		case <-ctx.Done():
			delay.Stop()
			return result, err
		case <-delay.C:
		}
	}
}

// unreachable reports whether an error is about the way to the API server, or about a server that is not up.
func unreachable(err error) bool {
	var broken net.Error
	return errors.As(err, &broken) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsServiceUnavailable(err)
}
