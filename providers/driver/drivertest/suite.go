package drivertest

import (
	"strings"
	"testing"

	"millwright.dev/providers/driver"
)

// testCase is one of the suite.
type testCase[M driver.Object] struct {
	name string
	run  func(*testing.T, Provider[M])
}

// cases are all of them, in the order of the README.
func cases[M driver.Object]() []testCase[M] {
	return []testCase[M]{
		{"a plain life", plainLife[M]},
		{"refusals of launches", refusedLaunches[M]},
		{"refusals of deletions", refusedDeletions[M]},
		{"refusals of everything", refusedEverything[M]},
		{"lost answers", lostAnswers[M]},
		{"a crash at every call", crashAtEveryCall[M]},
		{"states and events", statesAndEvents[M]},
		{"vanished", vanished[M]},
		{"taken back", takenBack[M]},
		{"stopped", stopped[M]},
		{"launch timeout", launchTimeout[M]},
		{"capacity in another zone", capacityInAnotherZone[M]},
		{"capacity of another type", capacityOfAnotherType[M]},
		{"capacity nowhere", capacityNowhere[M]},
		{"late shortage", lateShortage[M]},
		{"quota of a type", quotaOfType[M]},
		{"quota of all types", quotaOfAllTypes[M]},
		{"orphans", orphaned[M]},
		{"an object that is recreated", recreated[M]},
		{"credentials that are rotated", rotated[M]},
		{"credentials that expire", expired[M]},
		{"foreign machines", foreignMachines[M]},
		{"forged provider IDs", forgedProviderIDs[M]},
		{"forged launch records", forgedRecords[M]},
		{"names that are taken", takenNames[M]},
		{"deletion in mid-creation", deletedInMidCreation[M]},
		{"user data", userData[M]},
		{"two processes", twoProcesses[M]},
		{"many machines", manyMachines[M]},
		{"mixed faults", mixedFaults[M]},
	}
}

// Run runs the suite, each case as a subtest of its name. A provider waives a case only with a reason that stands in its README.
func Run[M driver.Object](t *testing.T, p Provider[M]) {
	t.Helper()
	waived := map[string]bool{}
	for _, c := range cases[M]() {
		waived[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			reason, ok := p.Waived[c.name]
			switch {
			case !ok:
				c.run(t, p)
			case reason == "" || !strings.Contains(p.README, reason):
				t.Errorf("the case is waived, and the README does not say why: it lacks %q", reason)
			default:
				t.Skip(reason)
			}
		})
	}
	for name := range p.Waived {
		if !waived[name] {
			t.Errorf("%q is waived, which is no case", name)
		}
	}
}
