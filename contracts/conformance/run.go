package conformance

import (
	"context"
	"slices"
	"sync"

	"millwright.dev/contracts/rules"
)

// Run runs the cases that may report on a selected rule, one after another, and returns what they found about these rules. It
// ends early, with what was found until then, when the context ends.
func Run[Env any](ctx context.Context, cases []Case[Env], selection Selection, env Env) []Finding {
	return RunParallel(ctx, cases, selection, env, 1)
}

// RunParallel is Run with up to limit cases at once. What they found is in the order of the cases.
func RunParallel[Env any](ctx context.Context, cases []Case[Env], selection Selection, env Env, limit int) []Finding {
	found := make([][]Finding, len(cases))
	slots := make(chan struct{}, max(limit, 1))
	var group sync.WaitGroup
	for i, c := range cases {
		if !selection.runs(c.Name, c.Rules) {
			continue
		}
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			t := NewT(c.Name, c.Rules...)
			c.Run(ctx, t, env)
			if ctx.Err() != nil {
				t.forgive()
			}
			found[i] = slices.DeleteFunc(t.Findings(), func(f Finding) bool { return !selection.looksAt(f.Rule) })
		})
	}
	group.Wait()
	return append(selection.skips(), slices.Concat(found...)...)
}

// RulesOf returns the rules that the cases may report on.
func RulesOf[Env any](cases []Case[Env]) []rules.ID {
	var found []rules.ID
	for _, c := range cases {
		found = append(found, c.Rules...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
