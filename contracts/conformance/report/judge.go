package report

import (
	"slices"

	"millwright.dev/contracts/rules"
)

// Judge counts the results of a report and sets its outcome. core are the features that every implementation has; interrupted means
// that the run ended before all rules were verified.
func (r *Report) Judge(core []rules.Feature, interrupted bool) {
	r.Summary, r.Outcome = Summary{}, Conformant
	if interrupted || r.Filter != "" || len(r.Results) == 0 {
		r.Outcome = Partial
	}
	// Whether anything that is not optional was verified of each core feature.
	looked := map[rules.Feature]bool{}
	for _, result := range r.Results {
		if feature := rules.Feature(result.Feature); slices.Contains(core, feature) && result.Level != rules.May {
			looked[feature] = looked[feature] || result.Status != Skip
		}
		must := result.Level == rules.Must
		switch result.Status {
		case Pass:
			r.Summary.Passed++
		case Fail:
			r.Summary.Failed++
			if must {
				r.Outcome = NotConformant
			} else {
				r.Summary.FailedShould++
			}
		default:
			r.Summary.Skipped++
			if !slices.Contains(core, rules.Feature(result.Feature)) {
				continue
			}
			r.Summary.SkippedCore++
			if must && r.Outcome == Conformant {
				r.Outcome = Partial
			}
		}
	}
	for _, something := range looked {
		if !something && r.Outcome == Conformant {
			r.Outcome = Partial
		}
	}
}
