package conformance

import (
	"regexp"
	"slices"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// Level is how much of a profile is selected.
type Level string

// The levels.
const (
	// Core selects the core features alone.
	Core Level = "core"
	// Extended selects the extended features as well.
	Extended Level = "extended"
)

// Selection is what a run verifies. The zero value of each filter selects everything.
type Selection struct {
	Profile Profile
	Level   Level
	// Versions of the contract; those that the implementation claims if there are none.
	Versions []string
	// Rules are the only ones to verify.
	Rules []rules.ID
	// Cases are the only ones to run.
	Cases *regexp.Regexp
	// SkipFeatures are not verified, each with the reason for the report.
	SkipFeatures map[rules.Feature]string
}

// Asked returns the selected rules of the profile, those of skipped features among them.
func (s Selection) Asked() []rules.Rule {
	return slices.DeleteFunc(rules.Of(s.Profile.Subjects...), func(rule rules.Rule) bool {
		return !s.Profile.Has(rule.Feature, s.Level) || len(s.Rules) > 0 && !slices.Contains(s.Rules, rule.ID)
	})
}

// Complete reports whether all rules of the profile are selected, so that the outcome can be that of the profile.
func (s Selection) Complete() bool { return len(s.Rules) == 0 && s.Cases == nil }

// looksAt reports whether the rule is selected and not skipped.
func (s Selection) looksAt(id rules.ID) bool {
	rule, known := rules.ByID(id)
	_, skipped := s.SkipFeatures[rule.Feature]
	return known && !skipped && s.Profile.Has(rule.Feature, s.Level) && slices.Contains(s.Profile.Subjects, rule.Subject) &&
		(len(s.Rules) == 0 || slices.Contains(s.Rules, id))
}

// runs reports whether a case is selected.
func (s Selection) runs(name string, ids []rules.ID) bool {
	return (s.Cases == nil || s.Cases.MatchString(name)) && slices.ContainsFunc(ids, s.looksAt)
}

// skips are findings about the rules of the features that were skipped.
func (s Selection) skips() []Finding {
	var findings []Finding
	for _, rule := range s.Asked() {
		if reason, skipped := s.SkipFeatures[rule.Feature]; skipped {
			findings = append(findings, Finding{Rule: rule.ID, Status: report.Skip, Reason: reason})
		}
	}
	return findings
}
