package drain

import (
	"context"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

const (
	// watchShare is the part that a watch lasts of what a reflector asks for, which is 5 to 10 minutes: one that has gone silent
	// ends with it. To open another one costs no list.
	watchShare = 5
	// watchGrace is how much longer a watch may last than the API server was asked for.
	watchGrace = 15 * time.Second
)

// listWatch returns a source from the methods of a client. Lists have a timeout, and so has the opening of a watch, with which a reflector
// may begin instead of a list.
func listWatch[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watching func(context.Context, metav1.ListOptions) (watch.Interface, error),
	report func(error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, DefaultRequestTimeout)
			defer cancel()
			objects, err := list(ctx, options)
			report(err)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := open(ctx, options, watching)
			report(err)
			return events, err
		},
	}
}

// open opens a watch that ends by itself, also when the API server does not end it.
func open(
	ctx context.Context,
	options metav1.ListOptions,
	watching func(context.Context, metav1.ListOptions) (watch.Interface, error),
) (watch.Interface, error) {
	seconds := max(1, ptr.Deref(options.TimeoutSeconds, 300)/watchShare)
	options.TimeoutSeconds = &seconds
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchGrace)
	limit := time.AfterFunc(DefaultRequestTimeout, cancel)
	events, err := watching(ctx, options)
	if inTime := limit.Stop(); err == nil && inTime {
		return &limited{events, cancel}, nil
	} else if !inTime {
		if err == nil {
			events.Stop()
		}
		err = errors.Wrap(context.DeadlineExceeded, "the watch is not answered")
	}
	cancel()
	return nil, err
}

// limited is a watch whose request ends when it is stopped.
type limited struct {
	watch.Interface
	cancel context.CancelFunc
}

// Stop implements watch.Interface.
func (l *limited) Stop() {
	l.cancel()
	l.Interface.Stop()
}
