package simulation

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Chaos is how often what goes wrong, of requests to the API server and of calls to the cloud.
type Chaos struct {
	// Refuse, Lose and Slow are the shares of requests to the API server.
	Refuse, Lose, Slow float64
	// Lost, Hang, Failed, Late and Delayed are the shares of calls to the cloud. Launches arrive late three times as often.
	Lost, Hang, Failed, Late, Delayed float64
	// Crash is the share of both at which the process exits.
	Crash float64
	// TakeOver is the share of writes at which another process takes over.
	TakeOver float64
	// Lag is by how much a cache is late at most.
	Lag time.Duration
	// Launch is the name of the call that launches.
	Launch string

	calm      atomic.Bool
	mu        sync.Mutex
	forbidden map[string]time.Time
	script    func(call string) (fate string)
}

// NewCalm is a world in which nothing goes wrong, until SetScript or SetOn says otherwise.
func NewCalm() *Chaos {
	c := &Chaos{forbidden: map[string]time.Time{}}
	c.calm.Store(true)
	return c
}

// NewChaos decides what goes wrong in a life; which of it is different in each.
func NewChaos(d *rand.Rand) *Chaos {
	share := func(most float64) float64 {
		if d.IntN(5) < 3 {
			return 0
		}
		return most * d.Float64()
	}
	return &Chaos{
		Refuse: share(0.3), Lose: share(0.2), Slow: share(0.1),
		Lost: share(0.3), Hang: share(0.1), Failed: share(0.3), Late: share(0.2), Delayed: share(0.2),
		Crash: share(0.06), TakeOver: share(0.3), Lag: One(d, 50*time.Millisecond, 500*time.Millisecond, 5*time.Second, 20*time.Second),
		forbidden: map[string]time.Time{},
	}
}

// On returns whether things go wrong.
func (c *Chaos) On() bool { return !c.calm.Load() }

// SetOn begins or ends that things go wrong.
func (c *Chaos) SetOn(on bool) { c.calm.Store(!on) }

// SetScript has a function decide what becomes of calls to the cloud, by their names, in place of chance: see the fates in network.go.
// Nil ends that.
func (c *Chaos) SetScript(script func(call string) (fate string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script = script
}

func (c *Chaos) scripted() func(string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.script
}

// Forbid has the API server forbid requests of a verb, such as "patch" or "patch status", until a time.
func (c *Chaos) Forbid(verb string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden[verb] = until
}

func (c *Chaos) forbids(verb string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.forbidden[verb])
}

// ofRequest is what becomes of a request to the API server.
func (w *World[M]) ofRequest(verb string, d *rand.Rand) (fate string) {
	c := w.Chaos
	x := d.Float64()
	refusal := One(d, "forbidden", "conflict", "invalid", "internal", "busy")
	if !c.On() {
		return ""
	}
	defer func() {
		if fate != "" {
			w.Fault("API: " + fate)
		}
	}()
	switch {
	case c.forbids(verb):
		return "forbidden"
	case x < c.Refuse && verb == "get":
		return One(d, "internal", "busy")
	case x < c.Refuse:
		return refusal
	case x < c.Refuse+c.Lose:
		return One(d, "lostRequest", "lostAnswer")
	case x < c.Refuse+c.Lose+c.Slow:
		return "slow"
	}
	return ""
}

// ofCall is what becomes of a call to the cloud.
func (w *World[M]) ofCall(name string, d *rand.Rand) (fate string) {
	c := w.Chaos
	x := d.Float64()
	if script := c.scripted(); script != nil {
		return script(name)
	}
	if !c.On() {
		return ""
	}
	defer func() {
		if fate != "" {
			w.Fault("cloud: " + fate)
		}
	}()
	late := c.Late
	if name == c.Launch {
		late *= 3
	}
	for _, f := range []struct {
		share float64
		fates []string
	}{
		{c.Lost, []string{LostRequest, LostAnswer}},
		{c.Hang, []string{Hang, HangAnswer}},
		{c.Failed, []string{Unavailable, Internal}},
		{late, []string{Late}},
		{c.Delayed, []string{Slow}},
	} {
		if x < f.share {
			return One(d, f.fates...)
		}
		x -= f.share
	}
	return ""
}

// crashes returns whether the process exits before or after the request or call takes effect, and counts it.
func (w *World[M]) crashes(d *rand.Rand) string {
	x := d.Float64()
	when := One(d, "before", "after")
	if w.point() {
		return w.CrashWhen
	}
	if w.Chaos.On() && x < w.Chaos.Crash {
		return when
	}
	return ""
}

// lag is how late an event of a watch is.
func (w *World[M]) lag(d *rand.Rand) time.Duration {
	most := 50 * time.Millisecond
	if w.Chaos.On() {
		most = max(most, w.Chaos.Lag)
	}
	if d.IntN(4) > 0 {
		most = min(most, 100*time.Millisecond)
	}
	return time.Millisecond + time.Duration(d.Int64N(int64(most)))
}

// TakeOver starts another process; those before continue for a while. There are four at most: each would be taken over itself.
func (w *World[M]) TakeOver(d *rand.Rand) {
	if w.Living() > 3 {
		return
	}
	old := w.Processes()
	w.Start(w.Server())
	w.After(time.Duration(d.Int64N(int64(15*time.Second))), func() {
		for _, p := range old {
			p.Stop("has lost its lease")
		}
		w.EnsureProcess(w.Server()) // The one that took over may have crashed.
	})
}
