// Package cloud is a simulated cloud unlike EC2: its machines have names instead of tokens, its calls begin long-running
// operations, a machine has parts that outlive it, reads are strong, and what is deleted is gone at once. README.md in the
// directory above describes its API.
//
// It has no goroutines and no timers: its state advances when it is called, by its clock, so that tests with a fake clock
// or in a bubble of testing/synctest are deterministic and fast.
package cloud

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Options of a Cloud. The zero value of each means its default.
type Options struct {
	// Clock that the state follows; the real one by default.
	Clock clock.PassiveClock
	// Zones of every account; a, b and c by default.
	Zones []string
	// Types of machines; small and large by default.
	Types []Type
	// Images that exist; node-v1 by default.
	Images []string
	// Delays of operations.
	Delays Delays
	// Limits on the calls of one account, by group; none by default.
	Limits map[Group]Limit
	// PageSize is how many items a list returns at most; 100 by default.
	PageSize int
	// Retention is how long operations that have ended, and request IDs, are remembered; an hour by default.
	Retention time.Duration
}

// Delays are how long operations take.
type Delays struct {
	// Step is the time for each part of a machine and for the machine itself; 1 second by default.
	Step time.Duration
	// Start is the time from the end of the operation until the machine runs; 5 seconds by default.
	Start time.Duration
	// Delete is the time that a deletion takes; 3 seconds by default.
	Delete time.Duration
}

// Cloud is the simulated cloud. Its methods may be called concurrently.
type Cloud struct {
	options Options

	mu       sync.Mutex
	accounts map[string]*account
	events   events
	faults   []*fault
	calls    map[string]int
	short    shortages
	sequence int
}

// New returns a Cloud without accounts.
func New(options Options) *Cloud {
	return &Cloud{options: options.withDefaults(), accounts: map[string]*account{}, calls: map[string]int{}, short: newShortages()}
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Zones == nil {
		o.Zones = []string{"a", "b", "c"}
	}
	if o.Types == nil {
		o.Types = []Type{{Name: "small", CPUs: 2, MemoryMiB: 4096}, {Name: "large", CPUs: 8, MemoryMiB: 32768}}
	}
	if o.Images == nil {
		o.Images = []string{"node-v1"}
	}
	if o.PageSize == 0 {
		o.PageSize = 100
	}
	if o.Retention == 0 {
		o.Retention = time.Hour
	}
	if o.Delays == (Delays{}) {
		o.Delays = Delays{Step: time.Second, Start: 5 * time.Second, Delete: 3 * time.Second}
	}
	return o
}

// AddAccount adds an account with a token that opens it.
func (c *Cloud) AddAccount(name, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accounts[name] = newAccount(name, token)
}

// account is what belongs to one account.
type account struct {
	name       string
	tokens     map[string]time.Time
	machines   map[string]*machine
	parts      map[string]map[string]*part
	operations map[string]*operation
	requests   map[string]*operation
	buckets    map[Group]*bucket
	quotas     Quotas
	history    history

	throttledUntil time.Time
}

func newAccount(name, token string) *account {
	return &account{
		name:       name,
		tokens:     map[string]time.Time{token: {}},
		machines:   map[string]*machine{},
		parts:      map[string]map[string]*part{Disks: {}, Interfaces: {}, Addresses: {}},
		operations: map[string]*operation{},
		requests:   map[string]*operation{},
		buckets:    map[Group]*bucket{},
		history:    newHistory(),
	}
}

// key is the name of a resource within its account and kind.
func key(zone, name string) string { return zone + "/" + name }

// next returns an ID that nothing else has.
func (c *Cloud) next(prefix string) string {
	c.sequence++
	return fmt.Sprintf("%s-%06d", prefix, c.sequence)
}

func (c *Cloud) now() time.Time { return c.options.Clock.Now() }

func (c *Cloud) typeOf(name string) (Type, bool) {
	i := slices.IndexFunc(c.options.Types, func(t Type) bool { return t.Name == name })
	if i < 0 {
		return Type{}, false
	}
	return c.options.Types[i], true
}
