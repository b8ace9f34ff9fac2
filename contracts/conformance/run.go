package conformance

import (
	"context"
	"slices"

	"millwright.dev/contracts/rules"
)

// Run runs the cases that may speak of a rule that was asked for, one after the other, and returns what they found of these rules. It
// ends early, with what was found until then, when the context ends.
func Run[Env any](ctx context.Context, cases []Case[Env], selection Selection, env Env) []Finding {
	findings := selection.skips()
	for _, c := range cases {
		if !selection.runs(c.Name, c.Rules) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		t := NewT(c.Name, c.Rules...)
		c.Run(ctx, t, env)
		findings = append(findings, slices.DeleteFunc(t.Findings(), func(f Finding) bool { return !selection.looksAt(f.Rule) })...)
	}
	return findings
}

// RulesOf returns the rules that some cases may speak of.
func RulesOf[Env any](cases []Case[Env]) []rules.ID {
	var found []rules.ID
	for _, c := range cases {
		found = append(found, c.Rules...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
