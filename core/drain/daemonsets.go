package drain

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// daemonSetsTTL is how long a list of DaemonSets proves that one exists.
const daemonSetsTTL = time.Minute

// daemonSets knows which DaemonSets of a cluster exist. All drains of the cluster share one list of them.
type daemonSets struct {
	mu      sync.Mutex
	uids    map[types.UID]bool
	readAt  time.Time
	reading attempt
	waiting []func()
}

// exists reports whether a DaemonSet exists, as far as a pod is concerned that was first seen at since. That one
// exists may be up to daemonSetsTTL old; that one does not must have been read after the pod was seen, since
// its DaemonSet may be new.
func (d *daemonSets) exists(uid types.UID, since, now time.Time) (exists, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil || now.Sub(d.readAt) > daemonSetsTTL {
		return false, false
	}
	if d.uids[uid] {
		return true, true
	}
	return false, !d.readAt.Before(since)
}

// await calls ready when the DaemonSets have been read once more. It reports whether the caller must start
// the reading, by read: nothing else does.
func (d *daemonSets) await(now time.Time, ready func()) (start bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reading.inFlight {
		d.waiting = append(d.waiting, ready)
		return false
	}
	if !d.reading.due(now) {
		return false
	}
	d.waiting = append(d.waiting, ready)
	d.reading.inFlight = true
	return true
}

// readError is why the DaemonSets cannot be read and when it is tried again; empty if there is none.
func (d *daemonSets) readError() (reason string, retryAt time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reading.reason, d.reading.retryAt
}

// read lists the DaemonSets and calls those who wait.
func (d *daemonSets) read(ctx context.Context, t *target, options *Options) {
	// The time before the request is what the answer is at least as new as.
	asked := options.Clock.Now()
	uids, err := t.listDaemonSets(ctx)

	d.mu.Lock()
	if err != nil {
		d.reading.refused(options.Clock.Now(), toOutcome(err), options.MinRetry, options.MaxRetry)
		d.reading.reason = "cannot list DaemonSets: " + err.Error()
	} else {
		d.uids, d.readAt, d.reading = uids, asked, attempt{}
	}
	waiting := d.waiting
	d.waiting = nil
	d.mu.Unlock()
	for _, ready := range waiting {
		ready()
	}
}
