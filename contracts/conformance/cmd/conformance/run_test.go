package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/version"
	"millwright.dev/test/testenv"
)

var (
	env   *testenv.Env
	admin client.Client
)

// asCommand has the test's program be the command, for shells.
const asCommand = "CONFORMANCE_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	options := testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs, testenv.AWSCRDs}, Objects: standin.CRDs()}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (func() error, error) {
		env = e
		klog.SetLogger(logr.Discard())
		ctrl.SetLogger(logr.Discard())
		var err error
		admin, err = client.New(e.Config, client.Options{Scheme: testenv.Scheme(), Mapper: e.Mapper})
		return nil, err
	}))
}

// waits suit a stand-in: what must come has time, for computers that are busy, and what must not come is seen at once.
const waits = `
apiVersion: conformance.millwright.dev/v1alpha1
kind: Timeouts
provision: 60s
delete: 60s
react: 30s
quiet: 300ms
poll: 20ms
cleanup: 60s
`

const sample = `
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

// file writes a file and returns its path.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// provide runs a stand-in for all namespaces until the test ends, and returns the address of its infrastructure's probe.
func provide(t *testing.T, switches standin.Switches) (*standin.Provider, string) {
	t.Helper()
	p := &standin.Provider{
		Config: env.Config, Mapper: env.Mapper, Contracts: []version.Contract{version.V1Beta2}, Switches: switches, Cloud: standin.NewCloud(),
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); testenv.Ended(err) != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(probe.Handler(p.Cloud))
	t.Cleanup(server.Close)
	return p, server.URL
}

// guard has the API server refuse changes of templates, everywhere, until the test ends.
func guard(t *testing.T, kind string) {
	t.Helper()
	undo, err := standin.Guard(t.Context(), admin, "", kind, standin.Switches{})
	t.Cleanup(undo)
	if err != nil {
		t.Fatal(err)
	}
}

// command runs the command on the test's cluster.
func command(t *testing.T, kubeconfig string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return call("", append([]string{"run", "--kubeconfig", kubeconfig, "--timeouts", file(t, "timeouts.yaml", waits)}, args...)...)
}

// beside are an object of the sample that is made once, and one that is made for each Cluster.
const beside = `
---
apiVersion: standin.conformance.millwright.dev/v1alpha2
kind: StandInControlPlane
metadata: {name: identity}
---
apiVersion: standin.conformance.millwright.dev/v1alpha2
kind: StandInCluster
metadata: {name: "${CLUSTER_NAME}-infra"}
---
apiVersion: v1
kind: Secret
metadata: {name: "${CLUSTER_NAME}-credentials"}
`

const configSample = `
apiVersion: standin.conformance.millwright.dev/v1alpha2
kind: StandInConfigTemplate
metadata: {name: any}
spec: {template: {spec: {size: small}}}
`

// A provider that keeps all rules passes, and what the command writes is a report that says so; for that its user needs the rights that
// the command asks for, and no others.
func TestRunOfAGoodProvider(t *testing.T) {
	guard(t, "StandInMachineTemplate")
	guard(t, "StandInConfigTemplate")
	p, machines := provide(t, standin.Switches{})
	restarter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.Restart(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer restarter.Close()
	for profile, test := range map[string]struct {
		sample string
		probe  []string
		least  int
	}{
		"inframachine":    {sample + beside, []string{"--probe", machines}, 20},
		"bootstrapconfig": {configSample + beside, nil, 15},
	} {
		t.Run(profile, func(t *testing.T) {
			rights, err := needs(profile, true, []byte(test.sample))
			if err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := command(t, exactly(t, rights), append(test.probe, "--profile", profile, "--contract", "v1beta2",
				"--sample", file(t, "sample.yaml", test.sample), "--restart", restartBy(restarter.URL), "--name", "stand-in")...)
			if code != exitConformant || strings.Contains(stderr, "forbidden") {
				t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
			}
			decoded, err := report.Decode([]byte(stdout))
			if err != nil {
				t.Fatal(err)
			}
			if decoded.Outcome != report.Conformant || decoded.Summary.Skipped != 0 || decoded.Summary.Passed < test.least {
				t.Errorf("%s, %+v", decoded.Outcome, decoded.Summary)
			}
			nothingLeft(t)
		})
	}
}

// What a provider breaks is named, in each form of the report, with the way to see it again.
func TestRunOfABrokenProvider(t *testing.T) {
	_, machines := provide(t, standin.Breaking("IM-020"))
	kubeconfig, from := file(t, "kubeconfig", string(env.Kubeconfig)), file(t, "sample.yaml", sample)
	for form, word := range map[string]string{"markdown": "## Failures", "junit": "<failure"} {
		code, stdout, stderr := command(t, kubeconfig, "--contract", "v1beta2", "--rule", "IM-020", "--sample", from, "--probe", machines,
			"--output", form)
		if code != exitNotConformant || !strings.Contains(stdout, word) || !strings.Contains(stdout, "IM-020") {
			t.Errorf("%s: exit code %d, without %q or the rule\n%s\n%s", form, code, word, stdout, stderr)
		}
	}
	nothingLeft(t)
}

// watcher receives the command's output, and interrupts it at the first case that is over.
type watcher struct {
	bytes.Buffer
	mu        sync.Mutex
	interrupt context.CancelFunc
}

func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(p, []byte(" took ")) {
		w.interrupt()
	}
	return w.Buffer.Write(p)
}

// An interrupted run leaves nothing, and its report says that it is not whole.
func TestAnInterruptedRunCleansUp(t *testing.T) {
	p, machines := provide(t, standin.Switches{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	output := &watcher{interrupt: cancel}
	code := run(ctx, []string{
		"run", "--kubeconfig", file(t, "kubeconfig", string(env.Kubeconfig)), "--timeouts", file(t, "timeouts.yaml", waits),
		"--sample", file(t, "sample.yaml", sample), "--probe", machines, "--contract", "v1beta2",
	}, strings.NewReader(""), &stdout, output)
	decoded, err := report.Decode(stdout.Bytes())
	if err != nil || ctx.Err() == nil {
		t.Fatalf("%v, interrupted: %v\n%s", err, ctx.Err(), output.String())
	}
	if code != exitPartial || decoded.Outcome != report.Partial || !strings.Contains(output.String(), "ended early") {
		t.Errorf("exit code %d, outcome %s\n%s", code, decoded.Outcome, output.String())
	}
	nothingLeft(t)
	if left, _ := p.Cloud.Machines(t.Context()); len(left) > 0 {
		t.Errorf("machines are left: %v", left)
	}
}

// nothingLeft fails if something of a run is left, but for namespaces, which this API server only marks as deleted.
func nothingLeft(t *testing.T) {
	t.Helper()
	lists := []client.ObjectList{
		&clusterv1.ClusterList{},
		&clusterv1.MachineList{},
		&corev1.SecretList{},
		&corev1.NamespaceList{},
		machineList(),
	}
	for _, list := range lists {
		if err := admin.List(t.Context(), list, client.HasLabels{behaviour.LabelRun}); err != nil {
			t.Fatal(err)
		}
		for _, object := range objectsOf(t, list) {
			if object.GetDeletionTimestamp() == nil || object.GetObjectKind().GroupVersionKind().Kind == "StandInMachine" {
				t.Errorf("%T %s is left", object, object.GetName())
			}
		}
	}
}
