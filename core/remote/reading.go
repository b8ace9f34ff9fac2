package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// refusedLimit is how many reads of Nodes in a row are refused until that counts: an authorizer may be away for a moment.
	refusedLimit = 3
	// unreadLimit is how long Nodes may not be read until that counts.
	unreadLimit = 10 * time.Second
	// renewLimit is how long a read that was sent again has before it is sent once more: one that is slow must come to its end.
	renewLimit = 5 * time.Minute
	// maxRefusal bounds, in bytes, how much of a refusal is repeated: a peer may answer as much as it likes.
	maxRefusal = 300
)

// reading reads Nodes for the cache, and notes when that does not succeed. A probe needs no right to read Nodes, and may be
// answered while a list hangs; the cache keeps what it has read last all the same, and nothing may be concluded from that.
type reading struct {
	cache.ListerWatcher
	next  cache.ListerWatcherWithContext
	clock clock.Clock
	// turned is called when Nodes may be read no more, or again; it must not block.
	turned func()

	mu sync.Mutex
	// since is when the first read was begun of those that have not succeeded; zero while Nodes are read. why is what came of the latest.
	since time.Time
	why   string
	// overdue is when that counts: nothing else reports it while probes are answered.
	overdue clock.Timer
	// refused counts the refusals of reads in a row, unwatched those of watches: who may list Nodes and not watch them is behind soon.
	refused, unwatched int
	// cut ends the list or watch that is under way, which was sent at began; renewed counts how often that was done, cutAt is when
	// it was done last, if no read has succeeded since.
	cut          func()
	began, cutAt time.Time
	renewed      int
	// outage is when the API server has answered a probe last, while it does not.
	outage time.Time
	// bookmarks is true once the API server has sent one: from then on it is known to send something at least each minute.
	bookmarks atomic.Bool
}

func newReading(lw cache.ListerWatcher, clk clock.Clock) *reading {
	return &reading{ListerWatcher: lw, next: cache.ToListerWatcherWithContext(lw), clock: clk}
}

// ListWithContext implements cache.ListerWithContext.
func (r *reading) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	for {
		attempt, cancel := context.WithCancel(ctx)
		renewed := r.begin(cancel)
		list, err := r.next.ListWithContext(attempt, options)
		cancel()
		if _, ofNodes := list.(*corev1.NodeList); err == nil && !ofNodes {
			// Informers cache whatever is listed.
			list, err = nil, fmt.Errorf("the answer is a %T and no list of Nodes", list)
		}
		if again := r.end(listing, err, renewed); !again || ctx.Err() != nil {
			return list, err
		}
	}
}

// unanswered notes that probes are not answered, and when one was last.
func (r *reading) unanswered(last time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outage.IsZero() {
		r.outage = last
	}
}

// renew has Nodes read again when probes are answered again: what was asked meanwhile may hang for minutes. What was open before
// continues, since to list Nodes once more costs an API server that is slow more than a probe.
func (r *reading) renew() {
	now := r.clock.Now()
	r.mu.Lock()
	cut := r.cut
	if r.outage.IsZero() || !r.began.After(r.outage) || now.Sub(r.cutAt) < renewLimit {
		cut = nil
	}
	r.outage = time.Time{}
	if cut != nil {
		r.renewed++
		r.cutAt = now
		r.await(now, "they are read again")
	}
	r.mu.Unlock()
	if cut != nil {
		cut()
	}
}

// begin notes that a request is sent, and what ends it.
func (r *reading) begin(cut func()) (renewed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut, r.began = cut, r.clock.Now()
	r.await(r.began, "the request is not answered")
	return r.renewed
}

// await notes since when a read is awaited. It is called under mu.
func (r *reading) await(now time.Time, why string) {
	if !r.since.IsZero() {
		return
	}
	r.since, r.why = now, why
	if clk, ok := r.clock.(clock.WithDelayedExecution); ok {
		r.overdue = clk.AfterFunc(unreadLimit, r.onOverdue)
	}
}

// onOverdue has it looked at that Nodes count as unread by time alone.
func (r *reading) onOverdue() {
	r.mu.Lock()
	counts := !r.since.IsZero() && !r.isRefused() // A refusal counts by itself, and was notified.
	r.mu.Unlock()
	if counts && r.turned != nil {
		r.turned()
	}
}

// verb is what a request asks for.
type verb string

const (
	listing  verb = "list"
	watching verb = "watch"
)

// end takes in what came of a request, and reports whether it was ended to be sent again.
func (r *reading) end(of verb, err error, renewed int) (again bool) {
	r.mu.Lock()
	before := r.isRefused()
	unread := !r.since.IsZero() && r.clock.Since(r.since) >= unreadLimit
	switch {
	case err == nil:
		r.refused = 0
		if of == watching {
			r.unwatched = 0
		}
		if !r.isRefused() {
			r.since, r.why, r.cutAt = time.Time{}, "", time.Time{}
			if r.overdue != nil {
				r.overdue.Stop()
			}
		}
	case renewed != r.renewed:
		again = true
	default:
		r.why = oneLine(err.Error())
		switch {
		case !refuses(err):
		case of == watching:
			r.unwatched++
		default:
			r.refused++
		}
	}
	// Nothing else reports that Nodes that counted as unread are read again: probes may have been answered all the time.
	changed := before != r.isRefused() || unread && r.since.IsZero()
	r.mu.Unlock()
	if changed && r.turned != nil {
		r.turned()
	}
	return again
}

// isRefused is called under mu.
func (r *reading) isRefused() bool { return r.refused >= refusedLimit || r.unwatched >= refusedLimit }

// refuses reports whether an error is an answer of the API server that will stay the same. That a version is too old, that there is too
// much to do, or that a server is not up behind its load balancer, says nothing against the next read.
func refuses(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	code := answer.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError &&
		!apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && !apierrors.IsTooManyRequests(err)
}

// refusal returns why Nodes may not be read; "" while they may.
func (r *reading) refusal(server string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isRefused() {
		return ""
	}
	return r.message(server)
}

// unread returns since when Nodes have not been read, and why; the zero time while they are.
func (r *reading) unread(server string) (time.Time, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() || !r.isRefused() && r.clock.Since(r.since) < unreadLimit {
		return time.Time{}, ""
	}
	return r.since, r.message(server)
}

// message is called under mu.
func (r *reading) message(server string) string {
	return fmt.Sprintf("Nodes cannot be read at %s since %s: %s", server, r.since.UTC().Format(time.RFC3339), r.why)
}

// oneLine puts a text on one line, of maxRefusal bytes at most.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxRefusal {
		return text
	}
	return strings.ToValidUTF8(text[:maxRefusal], "") + "…"
}
