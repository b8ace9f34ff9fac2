package remote

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Unanswered returns since when the API server of a cluster has not answered probes of the connection that there is, and what came of the
// latest; the zero time while it answers, and while there is no connection: Get returns since when then. A connection is lost only after
// Options.ProbeFailures, and what has been read over it is old long before that. It counts from when the first of the probes was sent: that
// there was no request between the answer before and that one is no sign of an API server that does not answer, and one that is slow would
// look as if it had not for a whole Options.ProbeInterval.
func (c *Connections) Unanswered(cluster types.NamespacedName) (since time.Time, why string) {
	found := c.find(cluster)
	if found == nil {
		return time.Time{}, ""
	}
	return found.unansweredSince()
}

// OnUnanswered has f called when the first probe of a connection is not answered, and when one is again. f must not block.
func (c *Connections) OnUnanswered(f func(cluster types.NamespacedName)) {
	c.subscribers.Lock()
	defer c.subscribers.Unlock()
	c.onUnanswered = append(c.onUnanswered, f)
}

func (c *Connections) unansweredChanged(r *runner) {
	clusters := c.clustersOf(r)
	c.subscribers.RLock()
	defer c.subscribers.RUnlock()
	for _, f := range c.onUnanswered {
		for _, cluster := range clusters {
			f(cluster)
		}
	}
}

// unansweredSince returns since when probes of the connection have not been answered, and what came of the latest; the zero time when
// that was answered, or when there is no connection.
func (r *runner) unansweredSince() (time.Time, string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.connection == nil || r.unanswered == "" {
		return time.Time{}, ""
	}
	return r.asked, r.unanswered
}

// answered notes that a probe was answered, and failed that one was not. Subscribers are notified of the first of each.
func (r *runner) answered() {
	r.mutex.Lock()
	r.lastSuccess = r.options.Clock.Now()
	changed := r.unanswered != ""
	r.unanswered = ""
	r.mutex.Unlock()
	if changed {
		r.connections.unansweredChanged(r)
	}
}

// failed takes in what came of a probe, and when that was sent.
func (r *runner) failed(err error, asked time.Time) {
	r.mutex.Lock()
	changed := r.unanswered == ""
	r.unanswered = err.Error()
	if changed {
		r.asked = asked
	}
	r.mutex.Unlock()
	if changed {
		r.connections.unansweredChanged(r)
	}
}
