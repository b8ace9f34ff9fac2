package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// Case is a part of a run that verifies some rules: a check of a manifest, or a scenario on a cluster.
type Case[Env any] struct {
	// Name is stable and can be selected with --case, such as "Deletion/WaitsForInfrastructure".
	Name string
	// Rules are those that it may report on; it does not run if none of them is selected.
	Rules []rules.ID
	// Method is static or behavioural.
	Method rules.Method
	// Run records findings about the rules. Rules without a finding count as skipped.
	Run func(ctx context.Context, t *T, env Env)
}

// T records what a case finds. Its methods may be called concurrently.
type T struct {
	mu       sync.Mutex
	name     string
	allowed  []rules.ID
	findings []Finding
}

// Finding is what a case found about a rule.
type Finding struct {
	Rule   rules.ID
	Status report.Status
	// Object is the kind that it is about, where a profile has several.
	Object   string
	Reason   string
	Failure  *report.Failure
	Evidence string
	Case     string
}

// NewT returns a T for a case of this name that may report on these rules.
func NewT(name string, allowed ...rules.ID) *T { return &T{name: name, allowed: allowed} }

// Pass records that the rule was kept, with the evidence.
func (t *T) Pass(rule rules.ID, object, evidence string, args ...any) {
	t.record(Finding{Rule: rule, Status: report.Pass, Object: object, Evidence: fmt.Sprintf(evidence, args...)})
}

// Fail records that the rule was broken: what was expected, and what was seen.
func (t *T) Fail(rule rules.ID, object string, failure report.Failure) {
	t.record(Finding{Rule: rule, Status: report.Fail, Object: object, Failure: &failure})
}

// Skip records why the rule could not be verified.
func (t *T) Skip(rule rules.ID, object, reason string, args ...any) {
	t.record(Finding{Rule: rule, Status: report.Skip, Object: object, Reason: fmt.Sprintf(reason, args...)})
}

// Findings returns what was recorded, in that order.
func (t *T) Findings() []Finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.findings)
}

// forgive turns failures into skips, for a run that was interrupted: what was missing might still have come.
func (t *T) forgive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, finding := range t.findings {
		if finding.Status == report.Fail {
			t.findings[i].Status, t.findings[i].Failure = report.Skip, nil
			t.findings[i].Reason = "the run was interrupted"
		}
	}
}

// record panics on a rule that the case does not declare: the table of which case verifies which rule would be wrong.
func (t *T) record(finding Finding) {
	if !slices.Contains(t.allowed, finding.Rule) {
		panic(fmt.Sprintf("case %s reports on rule %s, which it does not declare", t.name, finding.Rule))
	}
	finding.Case = t.name
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findings = append(t.findings, finding)
}

// stopped is what Stop panics with.
type stopped struct{ reason string }

// Stop ends a case that runs in Early: the suite cannot continue, or the situation that the rules are about was not reached.
func (t *T) Stop(reason string, args ...any) { panic(stopped{fmt.Sprintf(reason, args...)}) }

// Early runs a case, or a part of one, and returns the reason with which it was stopped; empty if it ran to its end.
func Early(run func()) (reason string) {
	defer func() {
		ended := recover()
		if early, is := ended.(stopped); is {
			reason = early.reason
		} else if ended != nil {
			panic(ended)
		}
	}()
	run()
	return ""
}

// SkipRest records each rule without a finding as skipped, with the reason; without one, that the case did not reach it.
func (t *T) SkipRest(object, reason string) {
	if reason == "" {
		reason = "the case did not reach this rule"
	}
	reported := map[rules.ID]bool{}
	for _, finding := range t.Findings() {
		reported[finding.Rule] = true
	}
	for _, id := range t.allowed {
		if !reported[id] {
			t.Skip(id, object, "%s", reason)
		}
	}
}
