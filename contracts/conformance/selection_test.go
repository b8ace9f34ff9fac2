package conformance

import (
	"regexp"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// small is a profile of one subject, with a core and an extended feature.
var small = Profile{
	Name: "small", Subjects: []rules.Subject{rules.InfraMachine},
	Core: []rules.Feature{rules.FeatureContract}, Extended: []rules.Feature{rules.FeatureAddresses},
}

// TestSelectionLooksAt: IM-001 is of the core feature, IM-004 of the extended one, IM-005 of neither, CO-001 of another subject.
func TestSelectionLooksAt(t *testing.T) {
	skip := map[rules.Feature]string{rules.FeatureContract: "not today"}
	for name, row := range map[string]struct {
		selection Selection
		looksAt   []rules.ID
		asked     []rules.ID
		complete  bool
	}{
		"core":               {Selection{Level: Core}, []rules.ID{"IM-001"}, []rules.ID{"IM-001"}, true},
		"extended":           {Selection{Level: Extended}, []rules.ID{"IM-001", "IM-004"}, []rules.ID{"IM-001", "IM-004"}, true},
		"a rule":             {Selection{Level: Extended, Rules: []rules.ID{"IM-004"}}, []rules.ID{"IM-004"}, []rules.ID{"IM-004"}, false},
		"a rule not of core": {Selection{Level: Core, Rules: []rules.ID{"IM-004"}}, nil, nil, false},
		"a feature skipped":  {Selection{Level: Extended, SkipFeatures: skip}, []rules.ID{"IM-004"}, []rules.ID{"IM-001", "IM-004"}, true},
		"some cases":         {Selection{Level: Core, Cases: regexp.MustCompile("A")}, []rules.ID{"IM-001"}, []rules.ID{"IM-001"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			row.selection.Profile = small
			asked := row.selection.Asked()
			for _, id := range []rules.ID{"IM-001", "IM-004", "IM-005", "CO-001", "XX-001"} {
				isAsked := slices.ContainsFunc(asked, func(rule rules.Rule) bool { return rule.ID == id })
				g.Expect(row.selection.looksAt(id)).To(Equal(slices.Contains(row.looksAt, id)), "looks at %s", id)
				g.Expect(isAsked).To(Equal(slices.Contains(row.asked, id)), "%s is asked for", id)
			}
			g.Expect(row.selection.Complete()).To(Equal(row.complete))
		})
	}
}

// TestSelectionRuns: a case runs when its name was asked for and it may speak of one rule that was.
func TestSelectionRuns(t *testing.T) {
	g := NewWithT(t)
	all := Selection{Profile: small, Level: Core}
	g.Expect(all.runs("Deletion", []rules.ID{"IM-001"})).To(BeTrue())
	g.Expect(all.runs("Deletion", []rules.ID{"CO-001", "IM-001"})).To(BeTrue())
	g.Expect(all.runs("Deletion", []rules.ID{"CO-001"})).To(BeFalse())
	g.Expect(all.runs("Deletion", nil)).To(BeFalse())
	named := Selection{Profile: small, Level: Core, Cases: regexp.MustCompile("^Del")}
	g.Expect(named.runs("Deletion", []rules.ID{"IM-001"})).To(BeTrue())
	g.Expect(named.runs("Pause", []rules.ID{"IM-001"})).To(BeFalse())
	g.Expect(named.runs("Deletion", []rules.ID{"CO-001"})).To(BeFalse())
}

// TestSelectionSkips: each rule of a skipped feature that was asked for is a finding with the reason, and no other is.
func TestSelectionSkips(t *testing.T) {
	g := NewWithT(t)
	selection := Selection{
		Profile: small, Level: Extended, Rules: []rules.ID{"IM-001", "IM-004"},
		SkipFeatures: map[rules.Feature]string{rules.FeatureAddresses: "no addresses", rules.FeatureMove: "not asked for"},
	}
	g.Expect(selection.skips()).To(Equal([]Finding{{Rule: "IM-004", Status: report.Skip, Reason: "no addresses"}}))
}

// TestProfileByName finds each profile by its name, and no other.
func TestProfileByName(t *testing.T) {
	g := NewWithT(t)
	for _, profile := range Profiles() {
		found, is := ProfileByName(profile.Name)
		g.Expect(is).To(BeTrue())
		g.Expect(found).To(Equal(profile))
	}
	found, is := ProfileByName("machine")
	g.Expect(is).To(BeFalse())
	g.Expect(found).To(Equal(Profile{}))
}

// TestProfileHas: extended features are those of the extended level alone.
func TestProfileHas(t *testing.T) {
	g := NewWithT(t)
	g.Expect([]bool{small.Has(rules.FeatureContract, Core), small.Has(rules.FeatureContract, Extended)}).To(Equal([]bool{true, true}))
	g.Expect([]bool{small.Has(rules.FeatureAddresses, Core), small.Has(rules.FeatureAddresses, Extended)}).To(Equal([]bool{false, true}))
	g.Expect([]bool{small.Has(rules.FeatureMove, Core), small.Has(rules.FeatureMove, Extended)}).To(Equal([]bool{false, false}))
}

// TestEveryVerifiedFeatureIsInAProfile: what the suite verifies of a subject, a profile of that subject can ask for.
func TestEveryVerifiedFeatureIsInAProfile(t *testing.T) {
	for _, rule := range rules.All() {
		asks := func(p Profile) bool {
			return slices.Contains(p.Subjects, rule.Subject) && p.Has(rule.Feature, Extended)
		}
		if !rule.VerifiedBy(rules.NotYet) && !slices.ContainsFunc(Profiles(), asks) {
			t.Errorf("%s is verified, and no profile of its subject has feature %s", rule.ID, rule.Feature)
		}
	}
}

// TestRetiredRulesAreNotLookedAt: a number that is no rule has the zero feature, which a profile could name by mistake.
func TestRetiredRulesAreNotLookedAt(t *testing.T) {
	careless := Profile{Subjects: []rules.Subject{""}, Core: []rules.Feature{""}}
	NewWithT(t).Expect(Selection{Profile: careless}.looksAt("XX-001")).To(BeFalse())
}
