package behaviour_test

import (
	"regexp"
	"strings"
	"testing"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

// aToken is what a bootstrap stand-in has in its data, markers are the suite's own secrets.
var aToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b|marker-cf-[0-9a-f]{6}-[0-9]{3}-secret|of-the-identity|b2YtdGhlLWlkZW50aXR5`)

// A provider that shows secrets is found out by a report and a log that show none: they are published.
func TestNoReportShowsASecret(t *testing.T) {
	for i, id := range []rules.ID{"IM-033", "BC-028"} {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			k, said := kinds[i], &output{}
			p := provide(t, k, version.V1Beta2, standin.Breaking(id))
			options := options(k, p)
			options.Log, options.Timeouts = said, []byte(longTimeouts)
			options.Selection.Cases = regexp.MustCompile("^(Lifecycle|Secrets)$")
			options.Sample = append(options.Sample, "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: identity}\nstringData: {key: of-the-identity}\n"...)
			results, err := k.suite(t.Context(), env.Config, options)
			if err != nil {
				t.Fatal(err)
			}
			if _, failed := with(results, report.Fail)[id]; !failed {
				t.Errorf("%s did not fail", id)
			}
			r := &report.Report{Results: results}
			for _, format := range report.Formats() {
				content, err := r.Encode(format)
				if err != nil {
					t.Fatal(err)
				}
				if shown := aToken.FindString(string(content)); shown != "" {
					t.Errorf("the report as %s shows %q", format, shown)
				}
				// A report in Markdown lists rules without their evidence.
				if format != report.Markdown && !strings.Contains(string(content), "{secret}") {
					t.Errorf("the report as %s does not say where a secret was", format)
				}
			}
			if shown := aToken.FindString(said.String()); shown != "" {
				t.Errorf("the log shows %q:\n%s", shown, said)
			}
		})
	}
}
