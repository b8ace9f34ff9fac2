package conformance

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/core"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/cores"
)

var (
	matrixFlag  = flag.Bool("matrix", false, "break every rule of cores: takes minutes")
	exactlyFlag = flag.Bool("exactly", false, "see of each broken core that it keeps all other rules: half a minute each")
)

// standIns are the versions of kinds with which the suite simulates providers.
func standIns() []schema.GroupVersion {
	return []schema.GroupVersion{
		standin.VersionOf(version.V1Beta2),
		{Group: core.OlderGroup, Version: standin.VersionOf(version.V1Beta1).Version},
	}
}

// Each rule of cores that is verified by behaviour has a case and a core that breaks it, which shows that the suite can fail.
func TestEveryRuleOfCoresHasAMutant(t *testing.T) {
	broken, verified := mutants(), conformance.RulesOf(core.Cases())
	for _, rule := range rules.Of(rules.Core) {
		if slices.Contains(rule.Verified, rules.Behavioural) && !slices.Contains(verified, rule.ID) {
			t.Errorf("%s is verified by behaviour, and has no case", rule.ID)
		}
	}
	for _, id := range verified {
		if _, is := broken[id]; !is {
			t.Errorf("%s has no core that breaks it", id)
		}
		delete(broken, id)
	}
	for id := range broken {
		t.Errorf("%s is broken, and has no case", id)
	}
}

// A core that breaks one rule is found to break that one; with -exactly, no other but those that fail with it.
func TestBrokenCoresFailTheirRule(t *testing.T) {
	if !*matrixFlag && *ruleFlag == "" {
		t.Skip("takes minutes: make conformance-mutants")
	}
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	program, err := cores.BuildOurs(t.Context(), root, t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	broken := mutants()
	for _, id := range conformance.RulesOf(core.Cases()) {
		if *ruleFlag == string(id) || *ruleFlag == "" {
			t.Run(string(id), func(t *testing.T) { breakRule(t, program, id, broken[id]) })
		}
	}
}

func breakRule(t *testing.T, program cores.Core, id rules.ID, m mutant) {
	wrong := misjudged(judgeMutant(t, program, id, m, 6*time.Second), id, m)
	if len(wrong) > 0 {
		// On a busy computer both a kept rule and a violation may show late.
		t.Logf("in little time: %v", wrong)
		wrong = misjudged(judgeMutant(t, program, id, m, 30*time.Second), id, m)
	}
	for _, what := range wrong {
		t.Error(what)
	}
}

func judgeMutant(t *testing.T, program cores.Core, id rules.ID, m mutant, react time.Duration) []report.Result {
	t.Helper()
	contract := m.contract
	if contract == "" {
		contract = version.V1Beta2
	}
	selection := conformance.Selection{Profile: conformance.CoreProfile, Level: conformance.Extended, Versions: []string{string(contract)}}
	if !*exactlyFlag {
		selection.Rules = append(slices.Clone(m.with), id)
	}
	p := startProxy(t, m.breaker, react)
	return look(t, program, target{kubeconfig: p.kubeconfig, selection: selection, react: react, quiet: react / 12})
}

// misjudged is what is wrong with the results of a core that breaks one rule.
func misjudged(results []report.Result, id rules.ID, m mutant) (wrong []string) {
	seen := false
	for _, r := range results {
		switch {
		case r.Rule == id:
			seen = r.Status == report.Fail
			if !seen {
				wrong = append(wrong, fmt.Sprintf("%s is broken, and its result is %s: %s", id, r.Status, r.Reason))
			}
		case r.Status == report.Fail && !slices.Contains(m.with, r.Rule):
			wrong = append(wrong, fmt.Sprintf("%s fails with %s: %+v", r.Rule, id, r.Failures))
		}
	}
	return wrong
}
