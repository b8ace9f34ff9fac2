package orphans

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

// propertySeeds are how many worlds there are, unless SIMULATION_RUNS says otherwise, and propertySteps what happens in each.
const (
	propertySeeds = 150
	propertySteps = 40
)

// TestWhateverHappensNothingThatIsClaimedIsEnded lets two leaders scan one management cluster, with a second one beside it, while objects
// are launched, deleted and removed by force, Clusters changed, paused, frozen and moved, also half-way, instances copied by users, backups
// restored, processes restarted, and requests fail.
func TestWhateverHappensNothingThatIsClaimedIsEnded(t *testing.T) {
	done, ended := map[string]int{}, 0
	seeds := propertySeeds
	if n, err := strconv.Atoi(os.Getenv("SIMULATION_RUNS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		l := newLand(seed)
		for range propertySteps {
			l.step(done)
		}
		l.settle()
		ended += len(l.cloud.deleted)
		if len(l.wrong) > 0 {
			t.Fatalf("seed %d: %s\n%s", seed, strings.Join(l.wrong, "\n"), strings.Join(l.log, "\n"))
		}
	}
	done["ended"] = ended
	for _, needed := range append(actionNames, "ended") {
		if done[needed] < seeds/4 {
			t.Errorf("%s happened %d times in %d seeds: %v", needed, done[needed], seeds, done)
		}
	}
}

var errAPI = errors.New("the API server does not answer")
