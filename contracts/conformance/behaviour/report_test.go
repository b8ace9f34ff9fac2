package behaviour_test

import (
	"regexp"
	"strings"
	"testing"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

// ofARun are words that no other run has: names of objects and the namespace, UIDs, IDs of machines, times that something took.
var ofARun = regexp.MustCompile(`c[cf]-[0-9a-f]{6}|[0-9a-f]{8}-[0-9a-f]{4}-|m-[0-9]{6}|[0-9]\.[0-9]+s|version [0-9]`)

// Reports of two runs can be compared: what is the same about a provider is said in the same words, in another order of the
// cases and with other objects and machines, whether it keeps the rules or not.
func TestReportsOfTwoRunsAreTheSame(t *testing.T) {
	for _, k := range kinds {
		for name, switches := range map[string]standin.Switches{"good": {}, "broken": standin.Breaking(broken[k.name])} {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				first, log := encoded(t, k, switches, 8)
				second, _ := encoded(t, k, switches, 3)
				if first != second {
					t.Errorf("the first says\n%s\nand the second\n%s", different(first, second), different(second, first))
				}
				if words := ofARun.FindAllString(first, -1); len(words) > 0 {
					t.Errorf("the report has %v", words)
				}
				if !strings.Contains(log, string(broken[k.name])) != (name == "good") || name == "broken" && !ofARun.MatchString(log) {
					t.Errorf("the log does not say which object broke the rule:\n%s", log)
				}
			})
		}
	}
}

// broken are rules whose failure names what is another in each run.
var broken = map[string]rules.ID{"StandInMachine": "IM-009", "StandInConfig": "BC-010"}

// encoded runs a suite and returns report and log.
func encoded(t *testing.T, k kind, switches standin.Switches, parallel int) (text, log string) {
	t.Helper()
	said := &output{}
	p := provide(t, k, version.V1Beta2, switches)
	options := options(k, p)
	options.Log, options.Parallel, options.Timeouts = said, parallel, []byte(longTimeouts)
	results, err := k.suite(t.Context(), env.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	r := &report.Report{Profile: k.profile.Name, Level: string(conformance.Extended), Results: results}
	r.Judge(k.profile.Core, false)
	content, err := r.Encode(report.JSON) // Without folded lines, in which a longer name would show.
	if err != nil {
		t.Fatal(err)
	}
	// The test has each run in a namespace of its own, after which it names the policy of templates.
	return strings.ReplaceAll(string(content), p.Namespace, "namespace"), said.String()
}

// different are the lines of a text that another does not have.
func different(text, from string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.Contains(from, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
