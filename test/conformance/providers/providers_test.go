package providers

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	suites "millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
)

var (
	run      = flag.Bool("conformance", false, "run the suites, as make conformance does: takes minutes")
	logs     = flag.String("logs", "", "a directory that keeps the logs")
	keep     = flag.Bool("write", false, "write the reports into docs/conformance")
	rule     = flag.String("rule", "", "check only this rule; then no report is written")
	provider = flag.String("provider", "", "the only implementation to check")
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// implementation is what a suite is run on.
type implementation struct {
	name, sample string
	profile      suites.Profile
	suite        suites.Suite
	config       *rest.Config
	options      suites.RunOptions
	// fill sets what the sample leaves open.
	fill map[string]string
	// open are the rules that may be skipped, since the implementation does not have what they are about.
	open []rules.ID
}

// TestOurProviders: AWS, Azure, GCP and CloudConfig keep every rule that their behaviour shows, under both versions of the contract.
func TestOurProviders(t *testing.T) {
	if !*run {
		t.Skip("takes minutes: make conformance")
	}
	s := start(t)
	for _, c := range s.Clouds {
		t.Run("infrastructure-"+c.Name, func(t *testing.T) {
			judge(t, implementation{
				name: "infrastructure-" + c.Name, sample: c.Name, profile: suites.InfraMachineProfile, suite: behaviour.InfraMachine,
				config: s.Control.Config(), options: suites.RunOptions{Probe: probeOf(c), Restart: restart(c.Manager)},
			})
		})
	}
	t.Run("bootstrap-cloudconfig", func(t *testing.T) {
		kubeconfig, err := s.TargetKubeconfig(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		judge(t, implementation{
			name: "bootstrap-cloudconfig", sample: "cloudconfig", profile: suites.BootstrapConfigProfile, suite: behaviour.BootstrapConfig,
			config: s.Control.Config(), options: suites.RunOptions{Restart: restart(s.CloudConfig)},
			fill: map[string]string{"${KUBECONFIG}": quoted(t, string(kubeconfig))},
			// Templates may be changed, as the contract allows.
			open: []rules.ID{"BT-004", "BT-005", "BT-006"},
		})
	})
}

// start starts clouds and providers, and no core: the suite simulates it.
func start(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.Start(t.Context(), sandbox.Options{Clouds: []string{"aws", "azure", "gcp"}, LogDir: *logs, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.Core.Kill()
	return s
}

func restart(m *sandbox.Manager) func(context.Context) error {
	return func(ctx context.Context) error {
		m.Kill()
		return m.Start(ctx)
	}
}

// quoted is text as YAML reads it on one line.
func quoted(t *testing.T, text string) string {
	t.Helper()
	content, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// judge runs a suite on an implementation. No rule may fail, and none may be skipped but for a reason that is known.
func judge(t *testing.T, i implementation) {
	t.Helper()
	if *provider != "" && *provider != i.name {
		t.Skip("another one is selected")
	}
	i.options.Sample = []byte(sample(t, i.sample+".yaml", i.fill))
	i.options.Timeouts = []byte(sample(t, "timeouts.yaml", nil))
	i.options.Log = t.Output()
	i.options.Selection = suites.Selection{Profile: i.profile, Level: suites.Extended}
	if *rule != "" {
		i.options.Selection.Rules = []rules.ID{rules.ID(*rule)}
	}
	results, err := i.suite(t.Context(), i.config, i.options)
	if err != nil {
		t.Error(err)
	}
	for _, r := range results {
		switch {
		case r.Status == report.Fail:
			t.Errorf("%s %s, contract %s: %s\n%+v", r.Level, r.Rule, r.ContractVersion, r.Text, r.Failures)
		case r.Status == report.Skip && !slices.Contains(i.open, r.Rule):
			t.Errorf("%s %s, contract %s: skipped: %s", r.Level, r.Rule, r.ContractVersion, r.Reason)
		}
	}
	if *keep && *rule == "" {
		write(t, i, results)
	}
}

func sample(t *testing.T, name string, fill map[string]string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("samples", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for placeholder, value := range fill {
		text = strings.ReplaceAll(text, placeholder, value)
	}
	return text
}

// suiteVersion is that of the suite and of our providers, which are released together, and the directory of the reports.
const suiteVersion = "v0.1.0"

// write writes the report, without the time, in both formats: a run with the same result writes the same.
func write(t *testing.T, i implementation, results []report.Result) {
	t.Helper()
	report.ReproduceBy(results, "make conformance PROVIDER="+i.name+" RULE=%s")
	r := &report.Report{
		Implementation: report.Implementation{
			Name:    i.name,
			Version: suiteVersion,
		},
		Suite:            report.Suite{Version: suiteVersion, Command: "make conformance"},
		Profile:          i.profile.Name,
		Level:            string(suites.Extended),
		ContractVersions: versionsOf(results),
		Methods:          []string{string(rules.Behavioural)},
		Results:          results,
	}
	r.APIVersion, r.Kind = report.APIVersion, report.Kind
	r.Judge(i.profile.Core, false)
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	directory := filepath.Join(root, "docs", "conformance", suiteVersion)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	for ending, format := range map[string]report.Format{".yaml": report.YAML, ".md": report.Markdown} {
		content, err := r.Encode(format)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, i.name+ending), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func versionsOf(results []report.Result) []string {
	var versions []string
	for _, r := range results {
		if r.ContractVersion != "" && !slices.Contains(versions, r.ContractVersion) {
			versions = append(versions, r.ContractVersion)
		}
	}
	return versions
}
