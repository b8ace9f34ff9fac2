package behaviour_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
	"millwright.dev/test/testenv"
)

var (
	env   *testenv.Env
	admin client.Client
)

func TestMain(m *testing.M) {
	options := testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs}, Objects: standin.CRDs()}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (func() error, error) {
		env = e
		var err error
		admin, err = client.New(e.Config, client.Options{Scheme: testenv.Scheme(addCRDs), Mapper: e.Mapper})
		return nil, err
	}))
}

func addCRDs(scheme *runtime.Scheme) error { return apiextensionsv1.AddToScheme(scheme) }

// quick are timeouts for a stand-in, which needs milliseconds. What must come has time, for computers that are busy; what must not
// come has little, since a stand-in that breaks a rule does it at once.
const quick = `
apiVersion: conformance.millwright.dev/v1alpha1
kind: Timeouts
provision: 10s
delete: 10s
react: 6s
quiet: 500ms
poll: 20ms
cleanup: 60s
`

// longTimeouts are those for rules that are kept: all comes, however busy the computer is.
var longTimeouts = strings.NewReplacer("provision: 10s", "provision: 180s", "delete: 10s", "delete: 180s", "react: 6s", "react: 180s",
	"cleanup: 60s", "cleanup: 300s").Replace(quick)

// thorough are those for a stand-in that was found to keep the rule that it breaks, or to break others: what must not come has time as
// well, and so has the end of what is let go only when it does not end by itself.
var thorough = strings.NewReplacer(
	"provision: 10s",
	"provision: 30s",
	"delete: 10s",
	"delete: 30s",
	"react: 6s",
	"react: 30s",
	"quiet: 500ms",
	"quiet: 5s",
	"cleanup: 60s",
	"cleanup: 300s",
).Replace(quick)

const machineSample = `
apiVersion: standin.conformance.millwright.dev/v1alpha2
kind: StandInMachine
metadata: {name: any}
spec: {size: small}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: any}
spec: {clusterName: any, failureDomain: zone-b}
`

const configSample = `
apiVersion: standin.conformance.millwright.dev/v1alpha2
kind: StandInConfigTemplate
metadata: {name: any}
spec: {template: {spec: {size: small}}}
`

// output collects what a run says, from several goroutines.
type output struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}

// kind is a kind of stand-ins with the suite that is about it.
type kind struct {
	name    string
	profile conformance.Profile
	suite   conformance.Suite
	cases   func() []conformance.Case[*behaviour.Env]
	sample  string
	subject rules.Subject
}

var kinds = []kind{
	{
		"StandInMachine", conformance.InfraMachineProfile, behaviour.InfraMachine, behaviour.InfraMachineCases, machineSample, rules.InfraMachine,
	},
	{
		"StandInConfig",
		conformance.BootstrapConfigProfile,
		behaviour.BootstrapConfig,
		behaviour.BootstrapConfigCases,
		configSample,
		rules.BootstrapConfig,
	},
}

// provide runs a stand-in in a namespace of its own until the test ends.
func provide(t *testing.T, k kind, contract version.Contract, switches standin.Switches) *standin.Provider {
	t.Helper()
	p := &standin.Provider{
		Config: env.Config, Mapper: env.Mapper, Namespace: testenv.Namespace(t, admin), Contracts: []version.Contract{contract},
		Switches: switches, Cloud: standin.NewCloud(),
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); testenv.Ended(err) != nil {
			t.Error(err)
		}
	})
	guard(t, p.Namespace, k.name+"Template", switches)
	return p
}

// options are those of a run on a stand-in.
func options(k kind, p *standin.Provider) conformance.RunOptions {
	return conformance.RunOptions{
		Selection: conformance.Selection{Profile: k.profile, Level: conformance.Extended, Versions: []string{string(p.Contracts[0])}},
		Sample:    []byte(k.sample), Timeouts: []byte(quick), Namespace: p.Namespace, Probe: p.Cloud, Restart: p.Restart,
	}
}

// judge runs a suite on a stand-in, with those timeouts, and returns its results.
func judge(t *testing.T, k kind, contract version.Contract, switches standin.Switches, timeouts string) []report.Result {
	t.Helper()
	said := &output{}
	options := options(k, provide(t, k, contract, switches))
	options.Log, options.Timeouts = said, []byte(timeouts)
	results, err := k.suite(t.Context(), env.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Verbose() {
		t.Log(said.String())
	}
	return results
}

// with returns the rules of a status, each with what was said of it.
func with(results []report.Result, status report.Status) map[rules.ID]string {
	found := map[rules.ID]string{}
	for _, r := range results {
		if r.Status == status {
			found[r.Rule] = fmt.Sprint(r.Reason, r.Failures, r.Evidence)
		}
	}
	return found
}

func describe(found map[rules.ID]string) string {
	var lines []string
	for id, what := range found {
		lines = append(lines, string(id)+": "+what)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// guard has the API server refuse changes of templates as the switches say, until the test ends.
func guard(t *testing.T, namespace, name string, switches standin.Switches) {
	t.Helper()
	undo, err := standin.Guard(t.Context(), admin, namespace, name, switches)
	t.Cleanup(undo)
	if err != nil {
		t.Fatal(err)
	}
}
