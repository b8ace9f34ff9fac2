package inventory

import (
	"maps"
	"slices"
	"time"

	"millwright.dev/providers/driver"
)

// reading is how recent what is known is: of a scope, or of one failure domain that the latest lists lack.
type reading struct {
	// listedAt is when the latest list that had it began; zero before the first one.
	listedAt time.Time
	// err is why the latest list has it not; nil if it has.
	err    error
	outage *Outage
}

// readingOf is that of where the handle's instance is. One of which that is not known may be where nothing was read. s.mu is held.
func (s *scope) readingOf(handle driver.Handle) *reading {
	place := handle.Placement.FailureDomain
	if i, ok := s.findListed(handle); ok && i.FailureDomain != "" {
		place = i.FailureDomain
	}
	if gap, ok := s.gaps[place]; ok {
		return gap
	}
	oldest := &s.reading
	for _, gap := range s.gaps {
		if place == "" && (oldest == &s.reading || gap.listedAt.Before(oldest.listedAt)) {
			oldest = gap
		}
	}
	return oldest
}

// enterReadings takes in how a list has ended. s.mu is held.
func (s *scope) enterReadings(err error, began time.Time) {
	partial := driver.AsIncomplete(err)
	before := s.reading
	switch {
	case partial != nil:
		gaps := make(map[string]*reading, len(partial.Missing))
		for _, place := range partial.Missing {
			gap := s.gaps[place]
			if gap == nil {
				gap = &reading{listedAt: before.listedAt, outage: before.outage}
			}
			gaps[place] = gap
		}
		s.gaps = gaps
	case err == nil:
		s.gaps = nil
	}
	s.err, s.failures = err, s.failures+1
	if err == nil || partial != nil {
		s.err, s.failures, s.listedAt = nil, 0, began
	}
	s.review(&s.reading)
	for _, gap := range s.gaps {
		gap.err = err
		s.review(gap)
	}
}

// kept are the instances that the latest list has where this one says nothing. s.mu is held.
func (s *scope) kept(partial *driver.Incomplete) []driver.Instance {
	if partial == nil {
		return nil
	}
	var kept []driver.Instance
	for _, i := range s.listed {
		if i.FailureDomain == "" || slices.Contains(partial.Missing, i.FailureDomain) {
			kept = append(kept, i)
		}
	}
	return kept
}

// Silent are the failure domains that the latest list of a scope lacks; none of a scope in which nothing has been tracked.
func (i *Inventory) Silent(name driver.Scope) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, ok := i.scopes[name]
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.gaps))
}

// unlistedSince is since when a list is missing that has all there is. While no machine is tracked none is. s.mu is held.
func (s *scope) unlistedSince() time.Time {
	oldest := s.missingSince(&s.reading)
	for _, gap := range s.gaps {
		if since := s.missingSince(gap); since.Before(oldest) {
			oldest = since
		}
	}
	return oldest
}
