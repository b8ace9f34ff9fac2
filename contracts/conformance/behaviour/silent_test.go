package behaviour_test

import (
	"strings"
	"testing"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
	"millwright.dev/test/testenv"
)

// A provider that never does anything keeps no rule by that: it is not conformant, and what it would only have to leave undone is skipped.
func TestAProviderThatNeverReactsKeepsNothing(t *testing.T) {
	alone := map[rules.ID]string{"IM-025": "an object without a finalizer goes when it is deleted, whoever made it"}
	for i, must := range []rules.ID{"IM-003", "BC-002"} {
		t.Run(kinds[i].name, func(t *testing.T) {
			t.Parallel()
			k := kinds[i]
			results, err := k.suite(t.Context(), env.Config, conformance.RunOptions{
				Selection: conformance.Selection{Profile: k.profile, Level: conformance.Extended, Versions: []string{string(version.V1Beta2)}},
				Sample:    []byte(k.sample),
				Namespace: testenv.Namespace(t, admin),
				Log:       t.Output(),
				Timeouts: []byte(
					strings.NewReplacer("provision: 10s", "provision: 2s", "delete: 10s", "delete: 2s", "react: 6s", "react: 1s").Replace(quick),
				),
			})
			if err != nil {
				t.Fatal(err)
			}
			for id, what := range with(results, report.Pass) {
				if _, known := alone[id]; !known && id[1] != 'T' { // Templates have no controller.
					t.Errorf("%s is kept: %s", id, what)
				}
			}
			if _, failed := with(results, report.Fail)[must]; !failed {
				t.Errorf("%s did not fail", must)
			}
			r := &report.Report{Results: results}
			if r.Judge(k.profile.Core, false); r.Outcome != report.NotConformant {
				t.Errorf("the outcome is %s", r.Outcome)
			}
		})
	}
}
