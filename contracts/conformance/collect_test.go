package conformance

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// collectRule is a rule that one version of the contract has, and one method verifies.
func collectRule(id rules.ID) rules.Rule {
	return rules.Rule{
		ID: id, Level: rules.Must, Text: "A.", Feature: rules.FeatureContract, Versions: []string{"v1beta2"}, Source: "https://x.example",
		Verified: []rules.Method{rules.Behavioural},
	}
}

// TestCollectStatus: one finding that calls a rule broken outweighs all others, one that calls it kept outweighs what was skipped, in
// whatever order they come.
func TestCollectStatus(t *testing.T) {
	const rule = rules.ID("IM-001")
	pass := Finding{Rule: rule, Status: report.Pass, Evidence: "seen", Case: "A"}
	fail := Finding{Rule: rule, Status: report.Fail, Failure: &report.Failure{Expected: "x", Seen: "y"}, Case: "B"}
	skip := Finding{Rule: rule, Status: report.Skip, Reason: "no Node", Case: "C"}
	later := Finding{Rule: rule, Status: report.Skip, Reason: "no Cluster", Case: "C"}
	elsewhere := Finding{Rule: "IM-002", Status: report.Fail, Failure: &report.Failure{}, Case: "D"}
	failures := []report.Failure{*fail.Failure}
	for name, row := range map[string]struct {
		findings []Finding
		want     report.Result
	}{
		"kept":                     {[]Finding{pass}, report.Result{Status: report.Pass, Evidence: []string{"seen"}, Cases: []string{"A"}}},
		"broken":                   {[]Finding{fail}, report.Result{Status: report.Fail, Failures: failures, Cases: []string{"B"}}},
		"skipped":                  {[]Finding{skip}, report.Result{Status: report.Skip, Reason: "no Node", Cases: []string{"C"}}},
		"skipped twice":            {[]Finding{skip, later}, report.Result{Status: report.Skip, Reason: "no Node", Cases: []string{"C"}}},
		"kept, then broken":        {[]Finding{pass, fail}, report.Result{Status: report.Fail, Failures: failures, Evidence: []string{"seen"}, Cases: []string{"A", "B"}}},
		"broken, then kept":        {[]Finding{fail, pass}, report.Result{Status: report.Fail, Failures: failures, Evidence: []string{"seen"}, Cases: []string{"B", "A"}}},
		"kept, then skipped":       {[]Finding{pass, skip}, report.Result{Status: report.Pass, Evidence: []string{"seen"}, Cases: []string{"A", "C"}}},
		"skipped, then kept":       {[]Finding{skip, pass}, report.Result{Status: report.Pass, Evidence: []string{"seen"}, Cases: []string{"C", "A"}}},
		"skipped, then broken":     {[]Finding{skip, fail}, report.Result{Status: report.Fail, Failures: failures, Cases: []string{"C", "B"}}},
		"broken, then skipped":     {[]Finding{fail, skip}, report.Result{Status: report.Fail, Failures: failures, Cases: []string{"B", "C"}}},
		"skipped by no case":       {[]Finding{{Rule: rule, Status: report.Skip}}, report.Result{Status: report.Skip, Reason: "no case reached this rule"}},
		"nothing":                  {nil, report.Result{Status: report.Skip, Reason: "no case reached this rule"}},
		"another rule is broken":   {[]Finding{pass, elsewhere}, report.Result{Status: report.Pass, Evidence: []string{"seen"}, Cases: []string{"A"}}},
		"another rule alone found": {[]Finding{elsewhere}, report.Result{Status: report.Skip, Reason: "no case reached this rule"}},
	} {
		t.Run(name, func(t *testing.T) {
			row.want.Rule, row.want.Level, row.want.Text, row.want.Feature = rule, rules.Must, "A.", string(rules.FeatureContract)
			row.want.ContractVersion, row.want.Method, row.want.Source = "v1beta2", string(rules.Behavioural), "https://x.example"
			results := Collect([]rules.Rule{collectRule(rule)}, "v1beta2", rules.Behavioural, row.findings)
			NewWithT(t).Expect(results).To(Equal([]report.Result{row.want}))
		})
	}
}

// TestCollectRules: rules of another version or method have no result; rules keep their order, and objects of a rule come by name.
func TestCollectRules(t *testing.T) {
	g := NewWithT(t)
	ids := func(results []report.Result) (found []string) {
		for _, result := range results {
			found = append(found, string(result.Rule)+result.Object+result.ContractVersion)
		}
		return found
	}
	asked := []rules.Rule{collectRule("IM-002"), collectRule("IM-001")}
	findings := []Finding{{Rule: "IM-002", Status: report.Pass, Object: "B"}, {Rule: "IM-002", Status: report.Fail, Object: "A"}}
	results := Collect(asked, "v1beta2", rules.Behavioural, findings)
	g.Expect(ids(results)).To(Equal([]string{"IM-002Av1beta2", "IM-002Bv1beta2", "IM-001v1beta2"}))
	g.Expect([]report.Status{results[0].Status, results[1].Status}).
		To(Equal([]report.Status{report.Fail, report.Pass}), "each object has its own")
	g.Expect(ids(Collect(asked, "", rules.Behavioural, findings))).
		To(Equal([]string{"IM-002A", "IM-002B", "IM-001"}), "no versions: all rules")
	g.Expect(Collect(asked, "v1beta1", rules.Behavioural, findings)).To(BeEmpty(), "the version does not have them")
	g.Expect(Collect(asked, "v1beta2", rules.Static, findings)).To(BeEmpty(), "the method does not verify them")
}
