package rewatch

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// Open opens a watch that ends by itself, also when the API server does not end it. The server has opening to answer, which it does before
// the first event; else the error is a timeout. From then on the watch lasts as long as is left of lasting, or until it is stopped if that
// is 0.
func Open(
	ctx context.Context,
	opening, lasting time.Duration,
	watching func(context.Context) (watch.Interface, error),
) (watch.Interface, error) {
	ctx, cancel := lastingContext(ctx, lasting)
	limit := time.AfterFunc(opening, cancel)
	events, err := watching(ctx)
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

func lastingContext(ctx context.Context, lasting time.Duration) (context.Context, context.CancelFunc) {
	if lasting > 0 {
		return context.WithTimeout(ctx, lasting)
	}
	return context.WithCancel(ctx)
}

// limited is a watch that ends with a context.
type limited struct {
	watch.Interface
	cancel context.CancelFunc
}

// Stop ends the watch.
func (l *limited) Stop() {
	l.cancel()
	l.Interface.Stop()
}
