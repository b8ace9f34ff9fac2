package cloud

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Group is a set of calls that an account's limit counts together.
type Group string

// Groups of calls.
const (
	// Creates is CreateMachine.
	Creates Group = "create"
	// Deletes is DeleteMachine and the deletions of parts.
	Deletes Group = "delete"
	// Reads are the calls about one resource.
	Reads Group = "read"
	// Lists are the lists, but for that of power.
	Lists Group = "list"
	// Slow is ListPower.
	Slow Group = "power"
)

// Limit is how many calls an account may make: so many per second on average, and a burst of them at once.
type Limit struct {
	PerSecond float64
	Burst     int
}

// bucket holds the calls that are allowed at a time.
type bucket struct {
	tokens float64
	filled time.Time
}

// throttle refuses a call that exceeds its account's limit.
func (c *Cloud) throttle(a *account, r request) *reply {
	now := c.now()
	if now.Before(a.throttledUntil) {
		return throttled(a.throttledUntil.Sub(now))
	}
	limit, ok := c.options.Limits[r.group]
	if !ok {
		return nil
	}
	b, ok := a.buckets[r.group]
	if !ok {
		b = &bucket{tokens: float64(limit.Burst), filled: now}
		a.buckets[r.group] = b
	}
	b.tokens = min(float64(limit.Burst), b.tokens+now.Sub(b.filled).Seconds()*limit.PerSecond)
	b.filled = now
	if b.tokens < 1 {
		return throttled(time.Duration((1 - b.tokens) / limit.PerSecond * float64(time.Second)))
	}
	b.tokens--
	return nil
}

func throttled(wait time.Duration) *reply {
	refused := refuse(http.StatusTooManyRequests, CodeRateLimited, "the account makes too many calls")
	refused.retryAfter = wait
	return &refused
}

// Throttle refuses all calls of an account for a time.
func (c *Cloud) Throttle(account string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[account].throttledUntil = c.now().Add(d)
}

// Quotas are how much an account may have; 0 for no limit.
type Quotas struct {
	// Machines is checked when a creation is requested.
	Machines int
	// Addresses is checked when the operation creates one.
	Addresses int
}

// SetQuotas changes the quotas of an account.
func (c *Cloud) SetQuotas(account string, q Quotas) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[account].quotas = q
}

// authenticate returns the account of a call, or why the caller may not use it.
func (c *Cloud) authenticate(r request) (*account, *reply) {
	known := false
	for name, a := range c.accounts {
		expiry, ok := a.tokens[r.token]
		known = known || ok
		if !ok || name != r.account {
			continue
		}
		if !expiry.IsZero() && !c.now().Before(expiry) {
			refused := refuse(http.StatusUnauthorized, CodeTokenExpired, "the token has expired")
			return nil, &refused
		}
		return a, nil
	}
	refused := refuse(http.StatusUnauthorized, CodeUnauthenticated, "the token is not known")
	if known {
		refused = refuse(http.StatusForbidden, CodePermissionDenied, fmt.Sprintf("the token is not for account %q", r.account))
	}
	return nil, &refused
}

// AddToken adds a valid token to an account.
func (c *Cloud) AddToken(account, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[account].tokens[token] = time.Time{}
}

// ExpireToken expires a token of an account after a time; AddToken makes it valid again.
func (c *Cloud) ExpireToken(account, token string, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[account].tokens[token] = c.now().Add(after)
}

// RevokeToken makes a token unknown.
func (c *Cloud) RevokeToken(account, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.accounts[account].tokens, token)
}

// shortages are what the cloud has no capacity for.
type shortages struct {
	exhausted   map[string]bool
	noAddresses map[string]bool
	room        map[offering]int
}

// offering is what capacity is counted by.
type offering struct {
	zone, machineType string
	spot              bool
}

func newShortages() shortages {
	return shortages{exhausted: map[string]bool{}, noAddresses: map[string]bool{}, room: map[offering]int{}}
}

// take takes the capacity for a machine, if there is some.
func (s *shortages) take(m *machine) bool {
	if s.exhausted[m.Zone] {
		return false
	}
	of := offering{zone: m.Zone, machineType: m.MachineType, spot: m.Spot}
	room, counted := s.room[of]
	if counted && room == 0 {
		return false
	}
	if counted {
		s.room[of]--
	}
	m.placed = true
	return true
}

func (s *shortages) release(m *machine) {
	of := offering{zone: m.Zone, machineType: m.MachineType, spot: m.Spot}
	if _, counted := s.room[of]; counted && m.placed {
		s.room[of]++
	}
}

// SetCapacity sets how many more machines of a type a zone has room for; without it, there is no limit.
func (c *Cloud) SetCapacity(zone, machineType string, spot bool, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.short.room[offering{zone: zone, machineType: machineType, spot: spot}] = n
}

// Exhaust leaves zones, or all if none is named, without capacity for anything until they are restored.
func (c *Cloud) Exhaust(zones ...string) { c.set(c.short.exhausted, zones, true) }

// Restore ends Exhaust and ExhaustAddresses.
func (c *Cloud) Restore(zones ...string) {
	c.set(c.short.exhausted, zones, false)
	c.set(c.short.noAddresses, zones, false)
}

// ExhaustAddresses leaves zones, or all if none is named, without addresses.
func (c *Cloud) ExhaustAddresses(zones ...string) { c.set(c.short.noAddresses, zones, true) }

func (c *Cloud) set(states map[string]bool, zones []string, state bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	if len(zones) == 0 {
		zones = slices.Clone(c.options.Zones)
	}
	for _, zone := range zones {
		states[zone] = state
	}
}
