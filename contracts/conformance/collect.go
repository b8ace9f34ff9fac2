package conformance

import (
	"cmp"
	"slices"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// Collect returns one result for each selected rule and each object that findings name, of one version of the
// contract ("" where a profile has no versions) and one method. A rule with a failed finding has failed; one without a failed or
// passed finding was skipped, for the reasons that findings give or because no case reached it.
func Collect(asked []rules.Rule, version string, method rules.Method, findings []Finding) []report.Result {
	var results []report.Result
	for _, rule := range asked {
		if !rule.VerifiedBy(method) || version != "" && !rule.Has(version) {
			continue
		}
		byObject := map[string][]Finding{}
		for _, finding := range findings {
			if finding.Rule == rule.ID {
				byObject[finding.Object] = append(byObject[finding.Object], finding)
			}
		}
		if len(byObject) == 0 {
			byObject[""] = nil
		}
		objects := make([]string, 0, len(byObject))
		for object := range byObject {
			objects = append(objects, object)
		}
		slices.Sort(objects)
		for _, object := range objects {
			results = append(results, resultOf(rule, object, version, method, byObject[object]))
		}
	}
	return results
}

func resultOf(rule rules.Rule, object, version string, method rules.Method, findings []Finding) report.Result {
	result := report.Result{
		Rule: rule.ID, Level: rule.Level, Text: rule.Text, Feature: string(rule.Feature), Object: object, ContractVersion: version,
		Method: string(method), Status: report.Skip, Source: rule.Source,
	}
	for _, finding := range findings {
		if finding.Case != "" && !slices.Contains(result.Cases, finding.Case) {
			result.Cases = append(result.Cases, finding.Case)
		}
		if finding.Evidence != "" {
			result.Evidence = append(result.Evidence, finding.Evidence)
		}
		if finding.Failure != nil {
			result.Failures = append(result.Failures, *finding.Failure)
		}
		result.Reason = cmp.Or(result.Reason, finding.Reason)
		switch {
		case finding.Status == report.Fail:
			result.Status = report.Fail
		case finding.Status == report.Pass && result.Status == report.Skip:
			result.Status = report.Pass
		}
	}
	switch {
	case result.Status != report.Skip:
		result.Reason = ""
	case result.Reason == "":
		result.Reason = "no case reached this rule"
	}
	return result
}
