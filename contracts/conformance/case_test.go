package conformance

import (
	"context"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// TestSkipRest: what a case has spoken of stays as it is, the rest of its rules is skipped, once.
func TestSkipRest(t *testing.T) {
	for reason, want := range map[string]string{"no 100% Node": "no 100% Node", "": "the case did not reach this rule"} {
		g := NewWithT(t)
		c := NewT("A", "IM-001", "IM-002", "IM-003")
		c.Pass("IM-001", "", "%d seen", 1)
		c.Skip("IM-002", "Foo", "no %s", "Cluster")
		c.SkipRest("Foo", reason)
		c.SkipRest("Foo", "another reason")
		g.Expect(c.Findings()).To(Equal([]Finding{
			{Rule: "IM-001", Status: report.Pass, Evidence: "1 seen", Case: "A"},
			{Rule: "IM-002", Status: report.Skip, Object: "Foo", Reason: "no Cluster", Case: "A"},
			{Rule: "IM-003", Status: report.Skip, Object: "Foo", Reason: want, Case: "A"},
		}))
	}
}

// TestCasesSpeakOfTheirRulesAlone: otherwise the table of who verifies what would be wrong.
func TestCasesSpeakOfTheirRulesAlone(t *testing.T) {
	g := NewWithT(t)
	c := NewT("A", "IM-001")
	g.Expect(func() { c.Pass("IM-002", "", "") }).To(PanicWith("case A reports on rule IM-002, which it does not declare"))
	g.Expect(c.Findings()).To(BeEmpty())
}

// TestFindingsAreACopy: whoever changes them does not change what the case has found.
func TestFindingsAreACopy(t *testing.T) {
	c := NewT("A", "IM-001")
	c.Pass("IM-001", "", "seen")
	c.Findings()[0].Status = report.Fail
	NewWithT(t).Expect(c.Findings()[0].Status).To(Equal(report.Pass))
}

// TestEarly: a case that stops says why, one that comes to its end says nothing, and any other panic goes on.
func TestEarly(t *testing.T) {
	g := NewWithT(t)
	c := NewT("A")
	g.Expect(Early(func() { c.Stop("no %s", "Node") })).To(Equal("no Node"))
	g.Expect(Early(func() {})).To(BeEmpty())
	g.Expect(func() { Early(func() { panic("a bug") }) }).To(PanicWith("a bug"))
}

// TestRulesOf returns each rule once, by number.
func TestRulesOf(t *testing.T) {
	found := RulesOf([]Case[int]{{Rules: []rules.ID{"IM-002", "IM-001"}}, {Rules: []rules.ID{"IM-002", "CO-001"}}})
	NewWithT(t).Expect(found).To(Equal([]rules.ID{"CO-001", "IM-001", "IM-002"}))
}

// passing is a case that finds its first rule kept.
func passing(name string, run func(), ids ...rules.ID) Case[int] {
	return Case[int]{Name: name, Rules: ids, Run: func(_ context.Context, t *T, _ int) {
		run()
		for _, id := range ids {
			t.Pass(id, "", "seen")
		}
	}}
}

// TestRunLooksAtWhatWasAskedForAlone: a case that was not asked for does not run, and findings of rules that were not asked for are left
// out.
func TestRunLooksAtWhatWasAskedForAlone(t *testing.T) {
	g := NewWithT(t)
	selection := Selection{Profile: small, Level: Extended, SkipFeatures: map[rules.Feature]string{rules.FeatureAddresses: "none"}}
	var ran []string
	named := func(name string, ids ...rules.ID) Case[int] {
		return passing(name, func() { ran = append(ran, name) }, ids...)
	}
	found := Run(t.Context(), []Case[int]{named("A", "CO-001"), named("B", "IM-001", "IM-004", "IM-005"), named("C", "IM-004")}, selection, 0)
	g.Expect(ran).To(Equal([]string{"B"}))
	var seen []string
	for _, finding := range found {
		seen = append(seen, string(finding.Rule)+" "+finding.Case)
	}
	g.Expect(seen[len(seen)-1]).To(Equal("IM-001 B"))
	g.Expect(strings.Join(seen, ", ")).To(ContainSubstring("IM-004 "), "the skipped feature comes first")
	for _, finding := range found[:len(found)-1] {
		g.Expect(finding.Status).To(Equal(report.Skip), string(finding.Rule))
		g.Expect(finding.Reason).To(Equal("none"))
	}
}

// TestRunParallelKeepsItsLimitAndOrder: two cases wait for each other and so run at once, never a third; a limit of 0 is 1.
func TestRunParallelKeepsItsLimitAndOrder(t *testing.T) {
	for limit, most := range map[int]int{0: 1, 1: 1, 2: 2} {
		g := NewWithT(t)
		var mu sync.Mutex
		running, peak := 0, 0
		meet := make(chan struct{})
		run := func() {
			mu.Lock()
			running++
			peak = max(peak, running)
			mu.Unlock()
			if most == 2 { // They come in pairs: each waits until another has begun.
				select {
				case meet <- struct{}{}:
				case <-meet:
				}
			}
			mu.Lock()
			running--
			mu.Unlock()
		}
		var cases []Case[int]
		for _, name := range []string{"A", "B", "C", "D"} {
			cases = append(cases, passing(name, run, "IM-001"))
		}
		found := RunParallel(t.Context(), cases, Selection{Profile: small, Level: Core}, 0, limit)
		g.Expect(peak).To(Equal(most))
		names := ""
		for _, finding := range found {
			names += finding.Case
		}
		g.Expect(names).To(Equal("ABCD"))
	}
}

// TestRunEndsWithItsContext: no case begins after the interruption.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found := Run(
		ctx,
		[]Case[int]{passing("A", cancel, "IM-001"), passing("B", func() { t.Error("it ran") }, "IM-001")},
		Selection{Profile: small, Level: Core},
		0,
	)
	NewWithT(t).Expect(found).To(HaveLen(1))
}
