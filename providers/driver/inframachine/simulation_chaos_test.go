package inframachine

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// simChaos is how often what goes wrong, of requests to the API server and of calls to the cloud; which of it is different in each life.
type simChaos struct {
	calm atomic.Bool
	// refuse, lose and slow are the shares of requests to the API server.
	refuse, lose, slow float64
	// lost, hang, failed, late and delayed are the shares of calls to the cloud.
	lost, hang, failed, late, delayed float64
	// crash is the share of both at which the process ends.
	crash float64
	// takeOver is the share of writes at which another process takes over.
	takeOver float64
	// lag is by how much a cache is late at most.
	lag time.Duration
	// forbidden is until when writes are forbidden, of the object or of its status.
	forbidden map[string]time.Time
	// script, if it is set, decides what becomes of calls to the cloud instead.
	script func(call string) string
}

func (c *simChaos) on() bool { return !c.calm.Load() }

// newSimChaos decides what goes wrong in a life.
func newSimChaos(d *rand.Rand) *simChaos {
	share := func(most float64) float64 {
		if d.IntN(5) < 3 {
			return 0
		}
		return most * d.Float64()
	}
	return &simChaos{
		refuse: share(0.3), lose: share(0.2), slow: share(0.1),
		lost: share(0.3), hang: share(0.1), failed: share(0.3), late: share(0.2), delayed: share(0.2),
		crash: share(0.06), takeOver: share(0.3), lag: one(d, 50*time.Millisecond, 500*time.Millisecond, 5*time.Second, 20*time.Second),
		forbidden: map[string]time.Time{},
	}
}

// ofRequest is what becomes of a request to the API server.
func (c *simChaos) ofRequest(w *simWorld, verb string, d *rand.Rand) (fate string) {
	x := d.Float64()
	refusal := one(d, "forbidden", "conflict", "invalid", "internal", "busy")
	if !c.on() {
		return ""
	}
	defer func() {
		if fate != "" {
			w.fault("API: " + fate)
		}
	}()
	w.mu.Lock()
	until := c.forbidden[verb]
	w.mu.Unlock()
	switch {
	case time.Now().Before(until):
		return "forbidden"
	case x < c.refuse && verb == "get":
		return one(d, "internal", "busy")
	case x < c.refuse:
		return refusal
	case x < c.refuse+c.lose:
		return one(d, "lostRequest", "lostAnswer")
	case x < c.refuse+c.lose+c.slow:
		return "slow"
	}
	return ""
}

// ofCall is what becomes of a call to the cloud.
func (c *simChaos) ofCall(w *simWorld, name string, d *rand.Rand) (fate string) {
	x := d.Float64()
	if c.script != nil {
		return c.script(name)
	}
	if !c.on() {
		return ""
	}
	defer func() {
		if fate != "" {
			w.fault("cloud: " + fate)
		}
	}()
	late := c.late
	if name == "Create machines" {
		late *= 3
	}
	for _, f := range []struct {
		share float64
		fates []string
	}{
		{c.lost, []string{"lostRequest", "lostAnswer"}},
		{c.hang, []string{"hang", "hangAnswer"}},
		{c.failed, []string{"unavailable", "internal"}},
		{late, []string{"late"}},
		{c.delayed, []string{"slow"}},
	} {
		if x < f.share {
			return one(d, f.fates...)
		}
		x -= f.share
	}
	return ""
}

// crashes returns whether the process ends before or after the request or call takes effect, and counts it.
func (w *simWorld) crashes(d *rand.Rand) string {
	x := d.Float64()
	when := one(d, "before", "after")
	if w.point() {
		return w.crashWhen
	}
	if w.chaos.on() && x < w.chaos.crash {
		return when
	}
	return ""
}

// lag is how late an event of a watch is.
func (w *simWorld) lag(d *rand.Rand) time.Duration {
	most := 50 * time.Millisecond
	if w.chaos.on() {
		most = w.chaos.lag
	}
	if d.IntN(4) > 0 {
		most = min(most, 100*time.Millisecond)
	}
	return time.Millisecond + time.Duration(d.Int64N(int64(most)))
}
