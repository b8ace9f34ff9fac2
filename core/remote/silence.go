package remote

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	// silentLimit is how long a watch may send nothing: kube-apiserver sends a bookmark each minute if nothing has changed.
	silentLimit = 150 * time.Second
	// overdueLimit is how long a watch may last beyond the time that was asked for, if nothing is known of bookmarks.
	overdueLimit = 15 * time.Second

	// defaultWatchSeconds is how long kube-apiserver lets a watch last at most that names no time (--min-request-timeout, twice).
	defaultWatchSeconds = 3600

	silent = "their watch sends nothing"
)

// WatchWithContext implements cache.WatcherWithContext. The reflector begins again when the watch ends.
func (r *reading) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	for {
		attempt, cancel := context.WithCancel(ctx)
		renewed := r.begin(cancel)
		events, err := r.next.WatchWithContext(attempt, options)
		if err == nil {
			return r.listen(ctx, events, cancel, options, renewed), nil
		}
		again := r.end(watching, err, renewed)
		cancel()
		if !again || ctx.Err() != nil {
			return nil, err
		}
	}
}

// watched is a watch that ends with its context, or when nothing has come of it for too long: a proxy may keep the stream open that has
// lost the API server behind it, and the cache would stand still while probes are answered.
type watched struct {
	watch.Interface
	reading *reading
	cancel  func()
	result  chan watch.Event
	stopped chan struct{}
	stop    sync.Once
	// until is when the API server is to have ended the watch.
	until time.Time
	// initial means that the watch begins with all Nodes, and has not sent them all.
	initial bool
	renewed int
}

// listen passes the events of an open watch on.
func (r *reading) listen(
	ctx context.Context,
	events watch.Interface,
	cancel func(),
	options metav1.ListOptions,
	renewed int,
) *watched {
	w := &watched{
		Interface: events, reading: r, cancel: cancel, renewed: renewed,
		result: make(chan watch.Event), stopped: make(chan struct{}),
		initial: ptr.Deref(options.SendInitialEvents, false),
		until:   r.clock.Now().Add(time.Duration(ptr.Deref(options.TimeoutSeconds, defaultWatchSeconds)) * time.Second),
	}
	if !w.initial {
		r.end(watching, nil, renewed)
	}
	go w.run(ctx)
	return w
}

// ResultChan implements watch.Interface.
func (w *watched) ResultChan() <-chan watch.Event { return w.result }

// Stop ends the watch.
func (w *watched) Stop() {
	w.stop.Do(func() { close(w.stopped) })
	w.cancel()
	w.Interface.Stop()
}

// run passes events on until the watch ends, is stopped, or is silent for too long.
func (w *watched) run(ctx context.Context) {
	defer close(w.result)
	defer w.cancel()
	for {
		limit := w.limit()
		timer := w.reading.clock.NewTimer(limit)
		select {
		case event, open := <-w.Interface.ResultChan():
			timer.Stop()
			if !open {
				return
			}
			w.heard(event)
			if !w.send(event) {
				return
			}
		case <-timer.C():
			klog.FromContext(ctx).Info("The watch of Nodes sends nothing; all Nodes are read again", "since", w.reading.clock.Now().Add(-limit))
			w.send(watch.Event{Type: watch.Error, Object: w.silence()})
			return
		case <-w.stopped:
			timer.Stop()
			return
		}
	}
}

// limit is how long to wait for the next event.
func (w *watched) limit() time.Duration {
	if w.initial || w.reading.bookmarks.Load() {
		return silentLimit
	}
	return max(w.until.Add(overdueLimit).Sub(w.reading.clock.Now()), time.Nanosecond)
}

func (w *watched) send(event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-w.stopped:
		return false
	}
}

// heard notes that something has come of a watch: all Nodes when their end is marked, and that the API server sends bookmarks.
func (w *watched) heard(event watch.Event) {
	if event.Type != watch.Bookmark {
		return
	}
	if object, err := meta.Accessor(event.Object); err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		w.initial = false
		w.reading.end(watching, nil, w.renewed)
	}
	w.reading.bookmarks.Store(true)
}

// silence is the error that makes the reflector read all Nodes again. One that says that the version is too old would have the same stream
// opened again while Nodes are still to be sent.
func (w *watched) silence() *metav1.Status {
	w.reading.noteSilence()
	err := apierrors.NewResourceExpired(silent)
	if w.initial {
		err = apierrors.NewTimeoutError(silent, 0)
	}
	status := err.Status()
	return &status
}

// noteSilence has Nodes count as not read from now on, until they are.
func (r *reading) noteSilence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.await(r.clock.Now(), silent)
	r.why = silent
}
