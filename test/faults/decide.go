package faults

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Kind is what is done to a request.
type Kind string

// The kinds of faults. Which of them a request may meet depends on what it is; see Rates.
const (
	// None lets the request pass.
	None Kind = ""
	// Conflict answers 409 to a write of an existing object, without effect.
	Conflict Kind = "conflict"
	// TooMany answers 429 without Retry-After, TooManyLater with Retry-After: 1.
	TooMany Kind = "429"
	// TooManyLater answers 429 with Retry-After: 1, which Kubernetes' client obeys by itself.
	TooManyLater Kind = "429-later"
	// Internal answers 500, Unavailable 503, both without effect.
	Internal Kind = "500"
	// Unavailable answers 503 without effect.
	Unavailable Kind = "503"
	// Timeout lets the request take effect and answers 504 after a delay, as an API server does that has
	// waited for its storage too long.
	Timeout Kind = "504"
	// CutBefore closes the connection, with everything else that is under way on it, without effect. At most one
	// connection a second is closed; otherwise only the request's own stream.
	CutBefore Kind = "cut-before"
	// CutAfter lets the request take effect and closes the connection: the answer is lost.
	CutAfter Kind = "cut-after"
	// ResetAfter lets the request take effect and ends this request alone without an answer.
	ResetAfter Kind = "reset-after"
	// Late ends this request alone without an answer, and lets it take effect after a delay: later writes overtake it.
	Late Kind = "late"
	// SlowBefore and SlowAfter take time before and after the effect; a caller that gives up meanwhile has
	// no influence on it.
	SlowBefore Kind = "slow-before"
	// SlowAfter takes time between the effect and the answer.
	SlowAfter Kind = "slow-after"
	// WatchCut ends a watch in the middle after a delay, by a broken stream.
	WatchCut Kind = "watch-cut"
	// WatchEnd ends a watch after a delay as an API server does on its own time limit.
	WatchEnd Kind = "watch-end"
	// WatchExpired refuses a watch with 410: the client must list again.
	WatchExpired Kind = "watch-expired"
	// Capacity lets a cloud lack machines of the requested type.
	Capacity Kind = "capacity"
	// Outage is not drawn: it is what every request meets while SetOutage is on, a closed connection.
	Outage Kind = "outage"
)

// Rate is how likely a kind of fault is, between 0 and 1.
type Rate struct {
	Kind Kind
	Rate float64
}

// Decision is what happens to one request.
type Decision struct {
	Kind Kind
	// Delay belongs to the kinds that take time.
	Delay time.Duration
}

// Decider draws a fault for each request. What the n-th request of a class meets follows from the seed, the
// decider's name, the class and n alone; so two runs with one seed decide alike, however the requests of different
// classes are interleaved.
type Decider struct {
	name string
	seed uint64
	// delay is the longest delay.
	delay time.Duration

	mu       sync.Mutex
	ordinals map[string]uint64
	injected map[Kind]int
	factor   float64
	outage   bool
}

// NewDecider returns a decider whose faults take at most the delay. Factor multiplies all rates; 0 is none at all.
func NewDecider(name string, seed uint64, delay time.Duration, factor float64) *Decider {
	return &Decider{name: name, seed: seed, delay: delay, factor: factor, ordinals: map[string]uint64{}, injected: map[Kind]int{}}
}

// SetFactor multiplies all rates from now on; 0 ends the faults.
func (d *Decider) SetFactor(factor float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.factor = factor
}

// SetOutage makes every request fail, or ends that.
func (d *Decider) SetOutage(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outage = on
}

// Injected counts the faults so far.
func (d *Decider) Injected() map[Kind]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := make(map[Kind]int, len(d.injected))
	for kind, count := range d.injected {
		counts[kind] = count
	}
	return counts
}

// Kinds lists what was injected so far, by name.
func (d *Decider) Kinds() []Kind {
	var kinds []Kind
	for kind := range d.Injected() {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Decide draws what the next request of the class meets.
func (d *Decider) Decide(class string, rates []Rate) Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ordinals[class]++
	decision := draw(rand.New(rand.NewPCG(d.seed, d.key(class))), rates, d.factor, d.delay) // Chaos, not secrets.
	if d.outage {
		decision = Decision{Kind: Outage}
	}
	if decision.Kind != None {
		d.injected[decision.Kind]++
	}
	return decision
}

// key distinguishes the draws of one seed.
func (d *Decider) key(class string) uint64 {
	hash := fnv.New64a()
	n := d.ordinals[class]
	_, _ = hash.Write([]byte(d.name + "\x00" + class + "\x00"))
	_, _ = hash.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	return hash.Sum64()
}

// draw takes the delay first, so that it does not depend on the rates.
func draw(random *rand.Rand, rates []Rate, factor float64, longest time.Duration) Decision {
	delay := time.Duration(random.Float64() * float64(longest))
	at := random.Float64()
	for _, rate := range rates {
		if at -= rate.Rate * factor; at < 0 {
			return Decision{Kind: rate.Kind, Delay: delay}
		}
	}
	return Decision{}
}
