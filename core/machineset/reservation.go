package machineset

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/naming"
)

// ReservedNamesAnnotation holds, on a MachineSet, the names that are reserved for Machines and not known to be used yet:
// a random seed and ordinals, as in "bcdfg:0-2,5". It is written before the first of these Machines is created, so that a
// process that continues after a restart, or runs at the same time, creates Machines under the same names: a creation
// that takes effect late is then refused, or found, and does not result in one Machine too many.
const ReservedNamesAnnotation = "machineset.millwright.dev/reserved-names"

// maxReserved bounds a reservation. More Machines take several.
const maxReserved = 1000

// reservation is the value of ReservedNamesAnnotation.
type reservation struct {
	// seed is random, so that the names of a reservation are not those of one before.
	seed string
	// open are the ordinals of the names, in ascending order.
	open []int
}

// String is the value as it is written.
func (r reservation) String() string {
	var ranges []string
	for i := 0; i < len(r.open); {
		end := i
		for end+1 < len(r.open) && r.open[end+1] == r.open[end]+1 {
			end++
		}
		text := strconv.Itoa(r.open[i])
		if end > i {
			text += "-" + strconv.Itoa(r.open[end])
		}
		ranges = append(ranges, text)
		i = end + 1
	}
	return r.seed + ":" + strings.Join(ranges, ",")
}

// parseReservation reads the value. A user may have edited it: what is not exactly as it is written counts as none.
func parseReservation(text string) (reservation, bool) {
	seed, ranges, ok := strings.Cut(text, ":")
	if !ok || len(seed) != naming.RandomLength || strings.Trim(seed, naming.Letters) != "" {
		return reservation{}, false
	}
	parsed := reservation{seed: seed}
	for part := range strings.SplitSeq(ranges, ",") {
		from, to, _ := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil || first >= 2*maxReserved {
			return reservation{}, false
		}
		last := first
		if to != "" {
			if last, err = strconv.Atoi(to); err != nil || last >= 2*maxReserved {
				return reservation{}, false
			}
		}
		if len(parsed.open) > 0 && first <= parsed.open[len(parsed.open)-1] {
			return reservation{}, false
		}
		for ordinal := first; ordinal <= last; ordinal++ {
			parsed.open = append(parsed.open, ordinal)
		}
	}
	return parsed, parsed.String() == text
}

// randomPart is the value of {{ .random }} in the name with this ordinal. It depends on the set, as a copy of the set
// has the annotation too.
func randomPart(set types.UID, seed string, ordinal int) string {
	return naming.Derived(fmt.Sprintf("%s/%s/%d", set, seed, ordinal))
}

// reservedName is a name that is reserved for a Machine.
type reservedName struct {
	seed    string
	ordinal int
	name    string
}

// names are the names of a reservation.
func (r reservation) names(set *clusterv1.MachineSet) ([]reservedName, error) {
	var names []reservedName
	for _, ordinal := range r.open {
		name, err := machineName(set, randomPart(set.UID, r.seed, ordinal))
		if err != nil {
			return nil, err
		}
		names = append(names, reservedName{seed: r.seed, ordinal: ordinal, name: name})
	}
	return names, nil
}

// newReservation reserves n names that differ from one another and from those in use.
func newReservation(set *clusterv1.MachineSet, seed string, n int, used map[string]bool) (reservation, []reservedName, error) {
	made := reservation{seed: seed}
	var names []reservedName
	seen := map[string]bool{}
	for ordinal := 0; len(names) < n && ordinal < 2*maxReserved; ordinal++ {
		one, err := reservation{seed: seed, open: []int{ordinal}}.names(set)
		if err != nil {
			return reservation{}, nil, err
		}
		if name := one[0].name; !used[name] && !seen[name] {
			seen[name] = true
			made.open, names = append(made.open, ordinal), append(names, one...)
		}
	}
	return made, names, nil
}
