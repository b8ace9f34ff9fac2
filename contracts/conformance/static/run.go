package static

import (
	"context"
	"slices"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// byVersion are the subjects whose rules are verified for each version of the contract.
var byVersion = []rules.Subject{rules.InfraMachine, rules.BootstrapConfig, rules.InfraCluster, rules.ControlPlane}

// Cases returns all static cases.
func Cases() []conformance.Case[*Bundle] {
	return slices.Concat(kindCases(), fieldCases(), planeCases(), templateCases(), releaseCases(), containerCases(),
		referenceCases(), fileCases(), classCases())
}

// Run verifies the bundle and returns a result for each selected rule, in the order of the rules: those of kinds for each
// version of the contract in the selection, or else in the labels of the kinds. Rules about kinds that the bundle does not have
// are omitted, unless the profile is named after them.
func Run(bundle *Bundle, selection conformance.Selection) []report.Result {
	bundle = bundle.indexed()
	var general, versioned []rules.Rule
	for _, rule := range selection.Asked() {
		switch {
		case slices.Contains(byVersion, rule.Subject) && (applies(bundle, selection.Profile, rule.Subject)):
			versioned = append(versioned, rule)
		case !slices.Contains(byVersion, rule.Subject):
			general = append(general, rule)
		}
	}
	findings := []conformance.Finding(nil)
	if len(bundle.contractKinds(true)) == 0 {
		if !bundle.needsKinds() {
			general = slices.DeleteFunc(general, func(r rules.Rule) bool { return r.Subject == rules.Kinds })
		}
		findings = noKinds(general)
	}
	findings = append(find(bundle, selection, "", general), findings...)
	results := conformance.Collect(general, "", rules.Static, findings)
	for _, contract := range Contracts(bundle, selection) {
		results = append(results, conformance.Collect(versioned, contract, rules.Static, find(bundle, selection, contract, versioned))...)
	}
	order := map[rules.ID]int{}
	for i, rule := range rules.All() {
		order[rule.ID] = i
	}
	slices.SortStableFunc(results, func(a, b report.Result) int { return order[a.Rule] - order[b.Rule] })
	return results
}

// noKinds returns skips for rules about kinds. A report without them would call a provider conformant of whose kinds
// none was recognized.
func noKinds(asked []rules.Rule) (findings []conformance.Finding) {
	const reason = "by name and group, no kind of the components is one that core objects refer to: set it with --kind"
	for _, rule := range asked {
		if rule.Subject == rules.Kinds {
			findings = append(findings, conformance.Finding{Rule: rule.ID, Status: report.Skip, Reason: reason})
		}
	}
	return findings
}

// Contracts returns the versions of the contract that Run verifies; the newest if the bundle claims none.
func Contracts(bundle *Bundle, selection conformance.Selection) []string {
	if len(selection.Versions) > 0 {
		return selection.Versions
	}
	if found := bundle.contracts(); len(found) > 0 {
		return found
	}
	return []string{rules.V1Beta2}
}

func applies(bundle *Bundle, profile conformance.Profile, subject rules.Subject) bool {
	primary := map[string]rules.Subject{
		conformance.InfraMachineProfile.Name: rules.InfraMachine, conformance.BootstrapConfigProfile.Name: rules.BootstrapConfig,
	}
	return len(bundle.kinds(subject)) > 0 || primary[profile.Name] == subject
}

func find(bundle *Bundle, selection conformance.Selection, contract string, asked []rules.Rule) []conformance.Finding {
	view := *bundle
	view.contract = contract
	cases := slices.DeleteFunc(Cases(), func(c conformance.Case[*Bundle]) bool {
		return !slices.ContainsFunc(asked, func(rule rules.Rule) bool { return slices.Contains(c.Rules, rule.ID) })
	})
	return conformance.Run(context.Background(), cases, selection, &view)
}

// look returns a static case.
func look(name string, run func(t *conformance.T, b *Bundle), ids ...rules.ID) conformance.Case[*Bundle] {
	return conformance.Case[*Bundle]{
		Name: name, Rules: ids, Method: rules.Static,
		Run: func(_ context.Context, t *conformance.T, b *Bundle) { run(t, b) },
	}
}

// check records that a rule is kept, or what was expected instead.
func check(t *conformance.T, id rules.ID, object string, kept bool, expected, seen string) {
	if kept {
		t.Pass(id, object, "%s", seen)
		return
	}
	t.Fail(id, object, report.Failure{Object: object, Expected: expected, Seen: seen})
}
