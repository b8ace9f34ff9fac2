package rules_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/rules"
)

// prefixes are those of the numbers of each subject, in order.
var prefixes = map[rules.Subject][]string{
	rules.Kinds: {"CV"}, rules.InfraMachine: {"IM", "IT"}, rules.BootstrapConfig: {"BC", "BT"},
	rules.InfraCluster: {"IC"}, rules.ControlPlane: {"CP"}, rules.Provider: {"PR"}, rules.Core: {"CO"},
}

var (
	number   = regexp.MustCompile(`^([A-Z]{2})-(\d{3})$`)
	sentence = regexp.MustCompile(`^[^.]*(\.\w[^.]*|` + "`[^`]*`" + `[^.]*)*\.$`)
)

func TestNumbers(t *testing.T) {
	g := NewWithT(t)
	seen := map[string]int{}
	for _, rule := range rules.All() {
		parts := number.FindStringSubmatch(string(rule.ID))
		g.Expect(parts).NotTo(BeNil(), "%s has another form", rule.ID)
		g.Expect(prefixes[rule.Subject]).To(ContainElement(parts[1]), "%s is of %s", rule.ID, rule.Subject)
		seen[parts[1]]++
		g.Expect(string(rule.ID)).To(HaveSuffix(threeDigits(seen[parts[1]])), "numbers of %s- follow each other; a retired one stays, as retired", parts[1])
	}
}

func threeDigits(n int) string {
	return string([]byte{'0' + byte(n/100), '0' + byte(n/10%10), '0' + byte(n%10)})
}

func TestRulesAreComplete(t *testing.T) {
	for _, rule := range rules.All() {
		t.Run(string(rule.ID), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(rule.Level).To(BeElementOf(rules.Must, rules.Should, rules.May))
			g.Expect(rule.Feature).NotTo(BeEmpty())
			g.Expect(rule.Versions).NotTo(BeEmpty())
			for _, version := range rule.Versions {
				g.Expect(version).To(BeElementOf(rules.V1Beta1, rules.V1Beta2))
			}
			g.Expect(slices.IsSorted(rule.Versions)).To(BeTrue())
			g.Expect(sentence.MatchString(rule.Text)).To(BeTrue(), "one sentence with a period: %s", rule.Text)
			g.Expect(rule.ReliedOn).NotTo(BeEmpty())
			if rule.Source == "" {
				g.Expect(rule.Feature).To(Equal(rules.FeatureMillwright), "without a source")
			} else {
				g.Expect(rule.Source).To(HavePrefix("https://"))
			}
			g.Expect(rule.Verified).NotTo(BeEmpty())
			notYet := slices.Equal(rule.Verified, []rules.Method{rules.NotYet})
			g.Expect(rule.Unverified != "").To(Equal(notYet), "Unverified says why nothing verifies it")
			if rule.VerifiedBy(rules.Behavioural) {
				g.Expect(rule.Subject).To(BeElementOf(rules.InfraMachine, rules.BootstrapConfig, rules.Core), "no suite runs implementations of others")
			}
			if !notYet {
				g.Expect(rule.Verified).NotTo(ContainElement(rules.NotYet))
			}
			for _, text := range []string{rule.Text, rule.Fields, rule.ReliedOn, rule.Unverified} {
				g.Expect(strings.ContainsAny(text, "|\n")).To(BeFalse(), "it goes into a table")
			}
		})
	}
}
