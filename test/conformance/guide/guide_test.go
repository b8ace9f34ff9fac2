// Package guide is the Go test of docs/guides/conformance.md, as a provider's authors would have it, on a provider that keeps all rules.
package guide

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/version"
	"millwright.dev/test/testenv"
)

// What the guide's reader has.
var (
	config           *rest.Config
	sample, timeouts []byte
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	options := testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs}, Objects: standin.CRDs()}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (func() error, error) {
		page, err := os.ReadFile("../../../docs/guides/conformance.md")
		if err != nil {
			return nil, err
		}
		_, rest, _ := strings.Cut(string(page), "cat > sample.yaml <<'EOF'\n")
		text, _, _ := strings.Cut(rest, "EOF\n")
		sample = []byte(
			strings.NewReplacer("infrastructure.example.com/v1beta2", standin.Group+"/v1alpha2", "ExampleMachine", "StandInMachine").Replace(text),
		)
		timeouts = []byte(waits)
		config = e.Config
		p := &standin.Provider{
			Config: e.Config, Mapper: e.Mapper, Contracts: []version.Contract{version.V1Beta1, version.V1Beta2}, Cloud: standin.NewCloud(),
		}
		admin, err := client.New(e.Config, client.Options{Scheme: testenv.Scheme(), Mapper: e.Mapper})
		if err != nil {
			return nil, err
		}
		if _, err := standin.Guard(context.Background(), admin, "", "StandInMachineTemplate", standin.Switches{}); err != nil {
			return nil, err
		}
		return func() error { return testenv.Ended(p.Stop()) }, p.Start()
	}))
}

// waits suit a stand-in: positive waits are long, for busy computers, and negative ones short.
const waits = `
apiVersion: conformance.millwright.dev/v1alpha1
kind: Timeouts
provision: 60s
delete: 60s
react: 60s
quiet: 300ms
poll: 20ms
cleanup: 60s
`

func TestConformance(t *testing.T) {
	results, err := behaviour.InfraMachine(t.Context(), config, conformance.RunOptions{
		Selection: conformance.Selection{Profile: conformance.InfraMachineProfile, Level: conformance.Extended},
		Sample:    sample, Timeouts: timeouts, Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Status == report.Fail {
			t.Errorf("%s %s: %+v", r.Rule, r.Text, r.Failures)
		}
	}
}

// TestTheGuideHasThisTest: the guide has the test above, to the letter.
func TestTheGuideHasThisTest(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("guide_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```go\n")
	block, _, _ = strings.Cut(block, "```")
	imports, function, found := strings.Cut(block, ")\n\n")
	if !found || !strings.Contains(string(own), strings.TrimSpace(function)) {
		t.Errorf("the guide has another test than this package:\n%s", function)
	}
	for line := range strings.Lines(strings.TrimPrefix(imports, "import (\n")) {
		if !strings.Contains(string(own), line) {
			t.Errorf("the guide imports %s", line)
		}
	}
}
