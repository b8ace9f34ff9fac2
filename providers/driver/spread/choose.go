// Package spread decides in which failure domain each instance goes, so that the machines of one set are spread evenly
// over those that have capacity.
package spread

import (
	"cmp"
	"hash/fnv"
	"slices"

	"millwright.dev/providers/driver"
)

// Choose returns the place of one more machine: one that has capacity, else the one whose shortage is the longest ago; among
// those, one of the type that the spec prefers; among those, one in the failure domain with the fewest machines of the set.
// Among equals turn decides, which spreads sets that are smaller than the number of failure domains. There must be a candidate.
func Choose(candidates []driver.Candidate, perDomain map[string]int, turn uint32) driver.Placement {
	start := int(turn % uint32(len(candidates))) // #nosec G115 -- a slice is shorter than that.
	turned := slices.Concat(candidates[start:], candidates[:start])
	return slices.MinFunc(turned, func(a, b driver.Candidate) int {
		return cmp.Or(
			a.ShortSince.Compare(b.ShortSince),
			cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(perDomain[a.FailureDomain], perDomain[b.FailureDomain]),
		)
	}).Placement
}

// Turn turns a text that identifies a machine, and the number of the attempt, into a number that is spread evenly.
func Turn(text string, attempt int) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))               // A hash never fails.
	return h.Sum32() + uint32(max(attempt, 0)) // #nosec G115 -- it may wrap around.
}
