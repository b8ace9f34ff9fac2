package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/cores"
)

var (
	upstreamFlag = flag.Bool("upstream", false, "build Cluster API's programs and run the suites on them, as make conformance-cores does")
	oursFlag     = flag.Bool("ours", false, "run the suite for cores on ours alone")
	writeFlag    = flag.String("write", "", "directory for the reports")
)

const (
	// suiteVersion is that of the suite and of our core, which are released together, and the directory of the reports.
	suiteVersion = "v0.1.0"
	// ourCore is the name of our core and of its report: the directory has the version.
	ourCore = "core-millwright"
)

// TestCoresSideBySide runs the suite on both cores with times that suit both, and writes a report of each.
func TestCoresSideBySide(t *testing.T) {
	if !*upstreamFlag {
		t.Skip("takes minutes of building: make conformance-cores")
	}
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := cores.BuildOurs(t.Context(), root, t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	results := judge(t, ours, 20*time.Second, 2*time.Second)
	keeps(t, results, nil)
	save(t, "make conformance-cores", conformance.CoreProfile, report.Implementation{Name: ourCore, Version: suiteVersion}, results)
	if *oursFlag {
		return
	}
	upstream, err := cores.BuildUpstream(t.Context(), root, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	results = judge(t, upstream, 30*time.Second, 3*time.Second)
	keeps(t, results, upstreamFindings)
	save(
		t,
		"make conformance-cores",
		conformance.CoreProfile,
		report.Implementation{Name: "core-cluster-api", Version: upstream.Version},
		results,
	)
}

// upstreamFindings are the rules that Cluster API's core does not keep, as docs/conformance/cores.md says.
var upstreamFindings = []rules.ID{"CO-050", "CO-051", "CO-053", "CO-054", "CO-055", "CO-058"}

// keeps fails for each rule that is not kept and no finding, or that was not checked.
func keeps(t *testing.T, results []report.Result, findings []rules.ID) {
	t.Helper()
	if len(results) == 0 && !t.Failed() {
		t.Error("no rule was checked")
	}
	for _, r := range results {
		if r.Status == report.Skip || r.Status == report.Fail && !slices.Contains(findings, r.Rule) {
			t.Errorf("%s %s is a finding to be written up, or a fault of the suite: %s %s %+v", r.Rule, r.ContractVersion, r.Status, r.Reason, r.Failures)
		}
	}
}

// save writes a report in YAML and Markdown, and logs what failed.
func save(t *testing.T, command string, profile conformance.Profile, implementation report.Implementation, results []report.Result) {
	t.Helper()
	report.ReproduceBy(results, command+" RULE=%s")
	name := implementation.Name
	if name != ourCore {
		name += "-" + implementation.Version
	}
	for _, r := range results {
		if r.Status != report.Pass {
			t.Logf("%s: %s %s %s %s %+v", name, r.Rule, r.ContractVersion, r.Status, r.Reason, r.Failures)
		}
	}
	full := &report.Report{
		Implementation: implementation, Suite: report.Suite{Version: suiteVersion, Command: command},
		Profile: profile.Name, Level: string(conformance.Extended),
		ContractVersions: []string{string(version.V1Beta1), string(version.V1Beta2)}, Methods: []string{"behavioural"}, Results: results,
	}
	full.APIVersion, full.Kind = report.APIVersion, report.Kind
	full.Judge(profile.Core, false)
	if content, err := yaml.Marshal(full.Summary); err == nil {
		t.Logf("%s: %s %s", name, full.Outcome, content)
	}
	if *writeFlag == "" || *ruleFlag != "" {
		return
	}
	for _, format := range []report.Format{report.YAML, report.Markdown} {
		content, err := full.Encode(format)
		if err != nil {
			t.Fatal(err)
		}
		extension := map[report.Format]string{report.YAML: ".yaml", report.Markdown: ".md"}[format]
		if err := os.WriteFile(filepath.Join(*writeFlag, name+extension), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
