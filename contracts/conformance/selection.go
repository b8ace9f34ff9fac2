package conformance

import (
	"regexp"
	"slices"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// Level is how much of a profile is asked for.
type Level string

// The levels.
const (
	// Core asks for the core features alone.
	Core Level = "core"
	// Extended asks for the extended features as well.
	Extended Level = "extended"
)

// Selection is what a run looks at. The zero value of each filter lets everything pass.
type Selection struct {
	Profile Profile
	Level   Level
	// Versions of the contract; those that the implementation claims if there are none.
	Versions []string
	// Rules are the only ones to look at.
	Rules []rules.ID
	// Cases are the only ones to run.
	Cases *regexp.Regexp
	// SkipFeatures are not looked at, each with the reason that the report gives.
	SkipFeatures map[rules.Feature]string
}

// Asked returns the rules of the profile that were asked for, those of skipped features among them.
func (s Selection) Asked() []rules.Rule {
	return slices.DeleteFunc(rules.Of(s.Profile.Subjects...), func(rule rules.Rule) bool {
		return !s.Profile.Has(rule.Feature, s.Level) || len(s.Rules) > 0 && !slices.Contains(s.Rules, rule.ID)
	})
}

// Complete reports whether all rules of the profile were asked for, so that the outcome can be that of the profile.
func (s Selection) Complete() bool { return len(s.Rules) == 0 && s.Cases == nil }

// looksAt reports whether cases may speak of the rule.
func (s Selection) looksAt(id rules.ID) bool {
	rule, known := rules.ByID(id)
	_, skipped := s.SkipFeatures[rule.Feature]
	return known && !skipped && s.Profile.Has(rule.Feature, s.Level) && slices.Contains(s.Profile.Subjects, rule.Subject) &&
		(len(s.Rules) == 0 || slices.Contains(s.Rules, id))
}

// runs reports whether a case was asked for.
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
