package behaviour_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

var matrix = flag.Bool("matrix", false, "break every rule under every version of the contract: takes minutes")

var contracts = []version.Contract{version.V1Beta1, version.V1Beta2}

// A provider that keeps all rules is found to, of each: none is left out.
func TestGoodStandInsPass(t *testing.T) {
	for _, k := range kinds {
		for _, contract := range contracts {
			t.Run(k.name+"/"+string(contract), func(t *testing.T) {
				t.Parallel()
				results := judge(t, k, contract, standin.Switches{}, longTimeouts)
				if len(results) == 0 {
					t.Error("there are no results")
				}
				for _, status := range []report.Status{report.Fail, report.Skip} {
					if other := with(results, status); len(other) > 0 {
						t.Errorf("%s:\n%s", status, describe(other))
					}
				}
			})
		}
	}
}

// A provider that breaks one rule is found to break that one, and no other.
func TestMutantsFailExactlyTheirRule(t *testing.T) {
	for _, k := range kinds {
		for i, id := range conformance.RulesOf(k.cases()) {
			for _, contract := range contracts {
				// Without the flag, one of the versions and a part of the rules: the whole takes minutes.
				if !*matrix && (contract == version.V1Beta1 || i%few != 0) {
					continue
				}
				t.Run(string(id)+"/"+string(contract), func(t *testing.T) {
					t.Parallel()
					wrong := misjudged(judge(t, k, contract, standin.Breaking(id), quick), id)
					if len(wrong) > 0 {
						// On a computer that is busy what keeps a rule may be late, and what breaks one too.
						t.Logf("in little time: %s", strings.Join(wrong, "\n"))
						wrong = misjudged(judge(t, k, contract, standin.Breaking(id), thorough), id)
					}
					for _, what := range wrong {
						t.Error(what)
					}
				})
			}
		}
	}
}

// misjudged is what is wrong with the results of a stand-in that breaks one rule.
func misjudged(results []report.Result, id rules.ID) (wrong []string) {
	failed := with(results, report.Fail)
	if rule, _ := rules.ByID(id); rule.Level == rules.May {
		// A provider may: it is not held to the rule.
		if _, passed := with(results, report.Pass)[id]; passed {
			wrong = append(wrong, fmt.Sprintf("%s is broken and passed", id))
		}
		failed[id] = ""
	}
	if _, seen := failed[id]; !seen {
		wrong = append(wrong, fmt.Sprintf("%s is broken and did not fail: skipped are\n%s", id, describe(with(results, report.Skip))))
	}
	delete(failed, id)
	if len(failed) > 0 {
		wrong = append(wrong, fmt.Sprintf("other rules failed:\n%s", describe(failed)))
	}
	return wrong
}

// few is which part of the rules is broken without the flag.
const few = 6

// Cases speak of every rule whose method is behavioural, and of no other.
func TestEveryBehaviouralRuleHasACase(t *testing.T) {
	for _, k := range kinds {
		var want []rules.ID
		for _, rule := range rules.Of(k.subject) {
			if rule.VerifiedBy(rules.Behavioural) {
				want = append(want, rule.ID)
			}
		}
		slices.Sort(want)
		if got := conformance.RulesOf(k.cases()); !slices.Equal(got, want) {
			t.Errorf("%s: cases speak of\n%v\nand should speak of\n%v", k.name, got, want)
		}
	}
}
