// Package conformance runs the conformance suites on the programs of this repository, and on others' for comparison.
package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/core"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/cores"
	"millwright.dev/test/testenv"
)

var (
	ruleFlag = flag.String("rule", "", "check only this rule")
	logsFlag = flag.String("logs", "", "a directory that keeps the logs of cores")
)

// waits are for cores on this computer, which need milliseconds. Positive waits are long, for busy computers.
const waits = `
apiVersion: conformance.millwright.dev/v1alpha1
kind: Timeouts
react: %s
delete: %s
quiet: %s
poll: 50ms
cleanup: 60s
`

var env *testenv.Env

func TestMain(m *testing.M) {
	options := testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs}, Objects: core.CRDs()}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (func() error, error) { env = e; return nil, nil }))
}

// target is how a core is tested.
type target struct {
	// kubeconfig is how the core reaches the API server, and the workload cluster; both as the administrator if it is empty.
	kubeconfig   []byte
	selection    conformance.Selection
	react, quiet time.Duration
}

// judge runs a core as a process and the suite on it.
func judge(t *testing.T, program cores.Core, react, quiet time.Duration) []report.Result {
	t.Helper()
	selection := conformance.Selection{Profile: conformance.CoreProfile, Level: conformance.Extended}
	if *ruleFlag != "" {
		selection.Rules = []rules.ID{rules.ID(*ruleFlag)}
	}
	return look(t, program, target{selection: selection, react: react, quiet: quiet})
}

func look(t *testing.T, program cores.Core, how target) []report.Result {
	t.Helper()
	dir := *logsFlag
	if dir == "" {
		dir = t.TempDir()
	}
	kubeconfig, content := filepath.Join(dir, "kubeconfig"), how.kubeconfig
	if len(content) == 0 {
		content = env.Kubeconfig
	}
	if err := os.WriteFile(kubeconfig, content, 0o600); err != nil {
		t.Fatal(err)
	}
	running, err := cores.Start(context.WithoutCancel(t.Context()), program, cores.Options{Kubeconfig: kubeconfig, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop()
	options := conformance.RunOptions{
		Selection: how.selection, TargetKubeconfig: how.kubeconfig,
		Timeouts: fmt.Appendf(nil, waits, how.react, 2*how.react, how.quiet), Log: t.Output(), Parallel: 16,
	}
	results, err := core.Suite(t.Context(), asSuite(t), options)
	if err != nil {
		t.Error(err)
	}
	if err := running.Alive(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		if log, err := os.ReadFile(running.Log()); err == nil {
			t.Logf("%.20000s", log)
		}
	}
	return results
}

// asSuite is the config of a user who has only the rights that the suite documents, so that these are all that it needs.
func asSuite(t *testing.T) *rest.Config {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespaced, clusterWide := core.Rights()
	user := testenv.User(t, admin, append(slices.Concat(namespaced, clusterWide), rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "delete"},
	}))
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return config
}

// deviations are rules that Millwright's core does not keep, with the reason. One that it keeps after all fails the test.
var deviations = map[rules.ID]string{}

// TestOurCore: Millwright's core keeps every rule but for the deviations that are known.
func TestOurCore(t *testing.T) {
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	program, err := cores.BuildOurs(t.Context(), root, t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, r := range judge(t, program, 30*time.Second, 500*time.Millisecond) {
		why, known := deviations[r.Rule]
		switch {
		case known && r.Status == report.Fail:
			t.Logf("%s %s is not kept: %s", r.Rule, r.ContractVersion, why)
		case known && r.Status == report.Pass:
			t.Errorf("%s %s is kept: remove it from the deviations", r.Rule, r.ContractVersion)
		case r.Status == report.Pass:
			passed++
		case r.Status == report.Fail:
			t.Errorf("%s %s %s: %+v", r.Rule, r.ContractVersion, r.Text, r.Failures)
		default:
			// A core that stops half-way keeps nothing: a rule that was not checked is not kept.
			t.Errorf("%s %s is skipped: %s", r.Rule, r.ContractVersion, r.Reason)
		}
	}
	t.Logf("%d passed", passed)
}
