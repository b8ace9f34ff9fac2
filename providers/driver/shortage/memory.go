// Package shortage remembers where a cloud lacked capacity, and which types were over a quota, for all machines of the process, so that
// the next launch goes elsewhere if it may.
//
// Capacity is scarce of an instance type in a failure domain on one market (purchase option) in a limit scope. A shortage
// of a place's own (driver.Error.OnlyPlace), for example of the addresses of a subnet, holds for that place only, and
// there for all types and markets; where the subnet spans places (driver.Candidate.Subnet), for the subnet. One of the launch's
// own terms (driver.Error.OnlyTerms), for example of the most that it pays, holds for launches with the same terms only. The
// failure domain and the place have the names that the account knows them by, so shortages of different limit scopes have
// nothing to do with each other.
//
// A quota is a shortage of the instance type on its market in all failure domains of the limit scope (quota.go).
//
// A shortage is forgotten after the TTL, from when it was last seen. A success does not end it: one instance that found
// room proves little about the next. Nothing is persisted. What the cloud's lists show of launches that failed late and of
// spot instances that were taken back brings some of it back in a new process.
package shortage

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// DefaultTTL is for how long a shortage is remembered by default.
const DefaultTTL = 3 * time.Minute

// countedFor is for how long after the latest one the refusals of an offering are counted on.
const countedFor = 24 * time.Hour

// maxCounted is of how many offerings refusals are counted; otherType is the instance type under which those of all others are.
const (
	maxCounted = 1000
	otherType  = "other"
)

// Memory remembers shortages. All methods may be called concurrently.
type Memory struct {
	clock clock.PassiveClock
	ttl   time.Duration

	mu       sync.Mutex
	since    map[subject]time.Time
	quotas   map[subject]string
	refusals map[offering]refusals
}

// offering is what a cloud has capacity of, and what the metrics have in their labels.
type offering struct {
	limitScope, instanceType, failureDomain, market string
}

// subject is what lacks: an offering or, if there is a place, something of that place's own; then type and market are empty. With
// terms, it lacks for launches with these alone.
type subject struct {
	offering
	place, terms string
}

type refusals struct {
	count  int
	latest time.Time
}

// New returns a Memory with this TTL, or DefaultTTL if it is not above zero.
func New(clk clock.PassiveClock, ttl time.Duration) *Memory {
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	m := &Memory{clock: clk, ttl: ttl, since: map[subject]time.Time{}, quotas: map[subject]string{}, refusals: map[offering]refusals{}}
	collector.add(m)
	return m
}

func offeringOf(limitScope string, c driver.Candidate) offering {
	return offering{limitScope: limitScope, instanceType: c.InstanceType, failureDomain: c.FailureDomain, market: c.Market}
}

// domainOf returns the subject of a shortage in the whole failure domain.
func domainOf(limitScope string, c driver.Candidate) subject {
	return subject{offering: offeringOf(limitScope, c)}
}

// placeOf returns the subject of a shortage of the place's own, or of the subnet's.
func placeOf(limitScope string, c driver.Candidate) subject {
	if c.Subnet != "" {
		return subject{offering: offering{limitScope: limitScope}, place: c.Subnet}
	}
	return subject{offering: offering{limitScope: limitScope, failureDomain: c.FailureDomain}, place: c.ID}
}

// termsOf returns the subject of a shortage in the whole failure domain for launches with the candidate's terms.
func termsOf(limitScope string, c driver.Candidate) subject {
	return subject{offering: offeringOf(limitScope, c), terms: c.Terms}
}

// Report records the error of a launch at the candidate that has just failed, if IsShortage.
func (m *Memory) Report(limitScope string, c driver.Candidate, err error) {
	if !IsShortage(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.present()
	short := subjectOf(limitScope, c, err)
	m.saw(short, now, now)
	if driver.IsQuota(err) {
		m.quotas[short] = err.Error()
		return
	}
	counted := offeringOf(limitScope, c)
	if _, known := m.refusals[counted]; !known && len(m.refusals) >= maxCounted {
		counted = offering{limitScope: limitScope, instanceType: otherType}
	}
	m.refusals[counted] = refusals{count: m.refusals[counted].count + 1, latest: now}
}

// subjectOf returns what lacks by the error of a launch.
func subjectOf(limitScope string, c driver.Candidate, err error) subject {
	var e *driver.Error
	switch {
	case errors.As(err, &e) && e.OnlyPlace:
		return placeOf(limitScope, c)
	case e != nil && e.Class == driver.ClassQuota:
		return quotaOf(limitScope, c)
	case e != nil && e.OnlyTerms:
		return termsOf(limitScope, c)
	}
	return domainOf(limitScope, c)
}

// Saw records that the candidate's failure domain lacked capacity for its type and market at that time. That may be long ago; a
// time in the future, from a clock that differs, counts as the present.
func (m *Memory) Saw(limitScope string, c driver.Candidate, when time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saw(domainOf(limitScope, c), when, m.present())
}

// SawInstances records the shortages that a list shows: of launches that failed for lack of capacity, and of instances
// that the cloud took back, as of their LaunchTime. An instance that had run for long before it was taken back, or of
// which the cloud does not say when it was launched or of which type it is, proves nothing about the present. It may be
// called with each list, since the same instance counts once.
func (m *Memory) SawInstances(limitScope string, instances []driver.Instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.present()
	for _, i := range instances {
		lacked := i.Refused == driver.ClassCapacity && !i.RefusedOnlyPlace // Which subnet it was is not listed.
		if i.InstanceType == "" || !lacked && !i.Interrupted {
			continue
		}
		of := offering{limitScope: limitScope, instanceType: i.InstanceType, failureDomain: i.FailureDomain, market: i.Market}
		m.saw(subject{offering: of}, i.LaunchTime, now)
	}
}

// saw keeps the latest time of a shortage. m.mu is held.
func (m *Memory) saw(of subject, when, now time.Time) {
	if when.After(now) {
		when = now
	}
	if when.After(m.since[of]) && now.Sub(when) < m.ttl {
		m.since[of] = when
	}
}

// present drops what is over and returns the time. What is in the future, since the clock was set back, counts from now
// on. m.mu is held.
func (m *Memory) present() time.Time {
	now := m.clock.Now()
	for of, when := range m.since {
		switch {
		case when.After(now):
			m.since[of] = now
		case now.Sub(when) >= m.ttl:
			delete(m.since, of)
			delete(m.quotas, of)
		}
	}
	for of, r := range m.refusals {
		switch {
		case r.latest.After(now):
			m.refusals[of] = refusals{count: r.count, latest: now}
		case now.Sub(r.latest) >= countedFor:
			delete(m.refusals, of)
		}
	}
	return now
}

// Mark returns the candidates with ShortSince set to when each last lacked capacity, in its failure domain or at its place, or was over
// a quota; to zero if not lately. It does not change its argument.
func (m *Memory) Mark(limitScope string, candidates []driver.Candidate) []driver.Candidate {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.present()
	marked := slices.Clone(candidates)
	for i, c := range marked {
		subjects := []subject{domainOf(limitScope, c), placeOf(limitScope, c), termsOf(limitScope, c), quotaOf(limitScope, c)}
		marked[i].ShortSince = m.since[slices.MaxFunc(subjects, func(a, b subject) int { return m.since[a].Compare(m.since[b]) })]
	}
	return marked
}

// Explain adds to a refusal for lack of capacity what was asked for, since the cloud's own words often leave that out: the
// type, the market, and all failure domains that lacked it lately, in a stable order, since the message ends in a
// condition. The candidate's own is always among them, or its place if that lacks something of its own. Other errors are
// returned as they are.
func (m *Memory) Explain(limitScope string, c driver.Candidate, err error) error {
	var answer *driver.Error
	if !errors.As(err, &answer) || answer.Class != driver.ClassCapacity {
		return err
	}
	where := map[string]struct{}{subjectOf(limitScope, c, err).where(): {}}
	m.mu.Lock()
	m.present()
	for of := range m.since {
		asked := offering{limitScope, c.InstanceType, of.failureDomain, c.Market}
		if of.offering == asked && of.place == "" && (of.terms == "" || of.terms == c.Terms) {
			where[of.where()] = struct{}{}
		}
	}
	m.mu.Unlock()

	explained := *answer
	what := strings.Join(strings.Fields(c.InstanceType+" "+c.Market+" "+c.Terms), " ") + " in " +
		strings.Join(slices.Sorted(maps.Keys(where)), ", ")
	explained.Err = errors.WithMessage(answer.Err, what)
	if answer.Err == nil {
		explained.Err = errors.New(what)
	}
	return &explained
}

// where returns the failure domain or place for people.
func (s subject) where() string {
	switch {
	case s.place == "":
		return s.failureDomain
	case s.failureDomain == "":
		return s.place
	}
	return s.place + " (" + s.failureDomain + ")"
}
