package conformance

import (
	"context"
	"testing"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// TestInterruptedCasesFailNothing: what a case did not see because the run was interrupted is no failure; what it has seen stays.
func TestInterruptedCasesFailNothing(t *testing.T) {
	for name, interrupt := range map[string]bool{"interrupted": true, "not interrupted": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cases := []Case[int]{{
				Name: "Case", Rules: []rules.ID{"IM-001", "IM-002"},
				Run: func(_ context.Context, t *T, _ int) {
					t.Pass("IM-001", "", "seen")
					if interrupt {
						cancel()
					}
					t.Fail("IM-002", "", report.Failure{Expected: "more", Seen: "nothing"})
				},
			}}
			want := map[rules.ID]report.Status{"IM-001": report.Pass, "IM-002": report.Fail}
			if interrupt {
				want["IM-002"] = report.Skip
			}
			found := Run(ctx, cases, Selection{Profile: InfraMachineProfile, Level: Extended}, 0)
			for _, finding := range found {
				if finding.Status != want[finding.Rule] || (finding.Failure != nil) != (finding.Status == report.Fail) {
					t.Errorf("%s: %s, want %s: %s %v", finding.Rule, finding.Status, want[finding.Rule], finding.Reason, finding.Failure)
				}
			}
			if len(found) != len(want) {
				t.Errorf("found %v", found)
			}
		})
	}
}
