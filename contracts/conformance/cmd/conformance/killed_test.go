package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/core"
	"millwright.dev/contracts/conformance/lease"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/standin"
)

// process is the command as a process of its own, for signals.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

// start runs the command; it is killed when the test ends.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), self, append([]string{
		"run", "--kubeconfig", file(t, "kubeconfig", string(env.Kubeconfig)), "--timeouts", file(t, "timeouts.yaml", waits),
	}, args...)...)}
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), asCommand+"=1"), &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// made waits until there is a Machine of a run that has a Lease, and returns the run's ID and namespace.
func made(t *testing.T) (run, namespace string) {
	t.Helper()
	eventually(t, "a Machine of the run", func() bool {
		list := &clusterv1.MachineList{}
		if err := admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if parts := strings.Split(list.Items[i].Name, "-"); len(parts) == 3 && len(runsOf(t, parts[1])) > 0 {
				run, namespace = parts[1], list.Items[i].Namespace
				return true
			}
		}
		return false
	})
	return run, namespace
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within three minutes", what)
		}
	}
}

// runsOf are the Leases of a run.
func runsOf(t *testing.T, run string) []coordinationv1.Lease {
	t.Helper()
	list := &coordinationv1.LeaseList{}
	if err := admin.List(t.Context(), list, client.MatchingLabels{behaviour.LabelRun: run}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// silence has the Leases of a run look as if nobody had renewed them for long.
func silence(t *testing.T, run string) {
	t.Helper()
	for _, l := range runsOf(t, run) {
		at := metav1.NewMicroTime(time.Now().Add(-2 * lease.DeadAfter)).UTC().Format(metav1.RFC3339Micro)
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, at))
		if err := admin.Patch(t.Context(), &l, patch); err != nil {
			t.Fatal(err)
		}
	}
}

// ofRun are the objects of the kinds that suites make whose names are those of a run, and what has its label.
func ofRun(t *testing.T, run string) (names []string) {
	t.Helper()
	lists := []client.ObjectList{
		&clusterv1.ClusterList{}, &clusterv1.MachineList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineDeploymentList{},
		&corev1.SecretList{}, &corev1.NodeList{}, &corev1.PodList{}, &corev1.NamespaceList{}, &coordinationv1.LeaseList{}, machineList(),
	}
	for _, list := range lists {
		if err := admin.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, object := range objectsOf(t, list) {
			// This API server only marks namespaces as deleted.
			if _, is := object.(*corev1.Namespace); is && object.GetDeletionTimestamp() != nil {
				continue
			}
			named := strings.HasPrefix(object.GetName(), "cc-"+run) || strings.HasPrefix(object.GetName(), "cf-"+run)
			if named || object.GetLabels()[behaviour.LabelRun] == run {
				names = append(names, fmt.Sprintf("%T %s", object, object.GetName()))
			}
		}
	}
	return names
}

// installed reports whether the kinds that a run of the suite for cores installs are there, and its role.
func installed(t *testing.T) bool {
	t.Helper()
	for _, object := range []client.Object{crdOf("standinmachines." + core.OlderGroup),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: core.Role().Name}}} {
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if err == nil && object.GetDeletionTimestamp() == nil {
			return true
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	return false
}

func crdOf(name string) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(name)
	return crd
}

// A run of the suite for cores that is killed leaves what it has made, also while another one runs; once its Lease is silent, the next run
// removes all of it, kinds and role too.
func TestTheNextRunRemovesWhatAKilledOneOfACoreLeft(t *testing.T) {
	killed := start(t, "--profile", "core")
	run, _ := made(t)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	next := func() {
		t.Helper()
		// A rule that no case on a cluster speaks of: the run begins and ends.
		code, _, stderr := command(t, file(t, "kubeconfig", string(env.Kubeconfig)), "--profile", "core", "--rule", "CO-048")
		if code != exitPartial || strings.Contains(stderr, "ended early") {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
	}
	before := ofRun(t, run)
	next()
	if after := ofRun(t, run); len(before) == 0 || len(after) != len(before) || !installed(t) {
		t.Errorf("of a run that may be alive there was\n%v\nand is\n%v; kinds are there: %t", before, after, installed(t))
	}
	silence(t, run)
	next()
	if left := ofRun(t, run); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	eventually(t, "the kinds go", func() bool { return !installed(t) })
}

// The same of a provider's machines: they cost, and only its provider can end them.
func TestTheNextRunRemovesWhatAKilledOneOfAProviderLeft(t *testing.T) {
	p, machines := provide(t, standin.Switches{})
	from := file(t, "sample.yaml", sample+beside)
	args := []string{"--sample", from, "--probe", machines, "--contract", "v1beta2", "--case", "^Lifecycle$"}
	killed := start(t, append(args[:6:6], "--rule", "IM-023", "--rule", "IM-009", "--rule", "IM-005")...)
	run, _ := made(t)
	eventually(t, "a machine", func() bool {
		list, err := p.Cloud.Machines(t.Context())
		return err == nil && len(list) > 0
	})
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	next := func(profile string, args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, file(t, "kubeconfig", string(env.Kubeconfig)), append([]string{"--profile", profile}, args...)...)
		if code != exitPartial || strings.Contains(stderr, "ended early") {
			t.Fatalf("exit code %d\n%s\n%s", code, stdout, stderr)
		}
		return stderr
	}
	next("inframachine", args...)
	if left := ofRun(t, run); len(left) == 0 {
		t.Errorf("of a run that may be alive nothing is left\n%s", killed.stderr.String())
	}
	silence(t, run)
	said := next("bootstrapconfig", "--sample", file(t, "config.yaml", configSample), "--contract", "v1beta2", "--rule", "BT-003")
	if left := ofRun(t, run); len(left) == 0 || !strings.Contains(said, run) || !strings.Contains(said, "StandInMachine") {
		t.Errorf("a run on another kind has removed what it cannot end, or does not say what is left: %v\n%s", left, said)
	}
	next("inframachine", args...)
	if left := ofRun(t, run); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	if left, _ := p.Cloud.Machines(t.Context()); len(left) > 0 {
		t.Errorf("machines are left: %v", left)
	}
}

// The signal of Ctrl-C ends a run that cleans up, and writes what it has found.
func TestASignalEndsARun(t *testing.T) {
	p, machines := provide(t, standin.Switches{})
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		ended := start(t, "--sample", file(t, "sample.yaml", sample), "--probe", machines, "--contract", "v1beta2")
		made(t)
		if err := ended.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = ended.Wait()
		decoded, err := report.Decode(ended.stdout.Bytes())
		if err != nil || ended.ProcessState.ExitCode() != exitPartial || decoded.Outcome != report.Partial {
			t.Errorf("%s: %v, %v\n%s", signal, ended.ProcessState, err, ended.stderr.String())
		}
		nothingLeft(t)
		if left, _ := p.Cloud.Machines(t.Context()); len(left) > 0 {
			t.Errorf("%s: machines are left: %v", signal, left)
		}
	}
}

// Two runs on one cluster do not see each other, and leave nothing.
func TestTwoRunsAtOnce(t *testing.T) {
	guard(t, "StandInMachineTemplate")
	p, machines := provide(t, standin.Switches{})
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			var stdout, stderr bytes.Buffer
			code := run(context.WithoutCancel(t.Context()), []string{
				"run",
				"--kubeconfig",
				file(t, "kubeconfig", string(env.Kubeconfig)),
				"--timeouts",
				file(t, "timeouts.yaml", waits),
				"--contract",
				"v1beta2",
				"--sample",
				file(t, "sample.yaml", sample+beside),
				"--probe",
				machines,
				"--case",
				"^(Lifecycle|FailureDomain|Secrets)$",
			}, strings.NewReader(""), &stdout, &stderr)
			decoded, err := report.Decode(stdout.Bytes())
			if err != nil || code != exitPartial || decoded.Summary.Failed > 0 || decoded.Summary.Passed < 10 {
				t.Errorf("run %d: exit code %d, %v\n%s\n%s", i, code, err, stdout.String(), stderr.String())
			}
		})
	}
	running.Wait()
	nothingLeft(t)
	if left, _ := p.Cloud.Machines(t.Context()); len(left) > 0 {
		t.Errorf("machines are left: %v", left)
	}
}
