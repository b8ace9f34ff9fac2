package report

import (
	"slices"

	"millwright.dev/contracts/rules"
)

// Judge counts the results of a report and concludes its outcome. core are the features that every implementation has; interrupted says
// that the run ended before all rules were looked at.
func (r *Report) Judge(core []rules.Feature, interrupted bool) {
	r.Summary, r.Outcome = Summary{}, Conformant
	if interrupted || r.Filter != "" || len(r.Results) == 0 {
		r.Outcome = Partial
	}
	for _, result := range r.Results {
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
}
