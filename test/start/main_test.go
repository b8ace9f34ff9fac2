package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
)

// output is that of the program.
type output struct {
	mutex sync.Mutex
	// buffer is no embedded field: its ReadFrom, which io.Copy prefers to Write, takes no lock.
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.buffer.Write(p)
}

func (o *output) text() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.buffer.String()
}

// world is two control planes with a simulated EC2 and nothing of ours installed.
type world struct {
	*WithT
	t       *testing.T
	sandbox *sandbox.Sandbox
	args    []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, sandbox.Options{Clusters: 2, Bare: true})
}

func newWorldOf(t *testing.T, options sandbox.Options) *world {
	t.Helper()
	s, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { NewWithT(t).Expect(s.Stop()).To(Succeed()) })
	return worldIn(t, s)
}

func worldIn(t *testing.T, s *sandbox.Sandbox) *world {
	t.Helper()
	return &world{
		WithT: NewWithT(t), t: t, sandbox: s,
		args: []string{"-control-kubeconfig=" + s.Control.KubeconfigPath(), "-target-kubeconfig=" + s.Target.KubeconfigPath()},
	}
}

// start runs the program; end interrupts it as ctrl-C does, and returns how it has exited.
func (w *world) start(args ...string) (out *output, end func() error) {
	w.t.Helper()
	out = &output{}
	o, err := parse(append(w.args, args...), out)
	w.Expect(err).NotTo(HaveOccurred())
	end, _ = w.begins(o, out)
	return out, end
}

// begins runs the program until its managers are ready; done gets how it has exited.
func (w *world) begins(o *options, out *output) (end func() error, done chan error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	done = make(chan error, 1)
	go func() { done <- run(ctx, o) }()
	w.Eventually(func(g Gomega) {
		select {
		case err := <-done:
			done <- err
			StopTrying("the program has exited").Wrap(err).Now()
		default:
		}
		for _, name := range o.managers() {
			g.Expect(out.text()).To(ContainSubstring("Manager " + name + " is ready"))
		}
	}).Should(Succeed(), out.text)
	return func() error {
		cancel()
		return <-done
	}, done
}

func (w *world) webhooks() (n int) {
	list := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
	w.Expect(w.sandbox.Control.Client.List(w.t.Context(), list)).To(Succeed())
	return len(list.Items)
}

// TestStart takes a Machine on simulated EC2 to Running, with Machine and Node in clusters that have nothing but kubeconfigs, and no Secret
// with one; then the same clusters have the core with its webhooks, and lose these with it.
func TestStart(t *testing.T) {
	w := newWorld(t)
	ctx, control := t.Context(), w.sandbox.Control.Client
	t.Setenv("AWS_ENDPOINT_URL_EC2", w.sandbox.Cloud("aws").URL())
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIASANDBOX000000000")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "sandbox")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	out, end := w.start("-flags=core=--v=3")
	w.Expect(w.webhooks()).To(BeZero())
	for _, file := range []string{"cluster", "cloudconfigtemplate", "awsmachinetemplate", "machinedeployment"} {
		w.Expect(sandbox.CreateFrom(ctx, control, filepath.Join(root(w), "config/samples/aws", file+".yaml"))).To(Succeed())
	}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: sandbox.SampleDeployment}}
	w.Expect(control.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`)))).To(Succeed())
	machines := &clusterv1.MachineList{}
	w.Eventually(func(g Gomega) {
		g.Expect(control.List(ctx, machines)).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(1))
		g.Expect(machines.Items[0].Status.Phase).To(Equal(string(clusterv1.MachinePhaseRunning)))
	}).Should(Succeed(), out.text)
	node := &corev1.Node{}
	w.Expect(w.sandbox.Target.Client.Get(ctx, client.ObjectKey{Name: machines.Items[0].Status.NodeRef.Name}, node)).To(Succeed())
	w.Expect(node.Spec.ProviderID).To(Equal(machines.Items[0].Spec.ProviderID))
	w.Expect(control.Delete(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: sandbox.SampleCluster}})).
		To(Succeed())
	w.Eventually(func() ([]string, error) {
		live, err := w.sandbox.EC2.LiveInstances(ctx)
		ids := make([]string, len(live))
		for i := range live {
			ids[i] = live[i].ID
		}
		return ids, err
	}).Should(BeEmpty(), out.text)
	w.Expect(end()).To(Succeed())

	w.refusesBesideDeployment()

	out, end = w.start("-webhooks=localhost")
	w.Expect(w.webhooks()).To(Equal(1))
	invalid := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "invalid"}}
	invalid.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"nonsense"}
	w.Eventually(func() error { return control.Create(ctx, invalid) }).Should(MatchError(ContainSubstring("admission webhook")))
	w.Expect(end()).To(Succeed())
	w.Expect(out.text()).NotTo(ContainSubstring("is forbidden"))
	w.Expect(w.webhooks()).To(BeZero())
	invalid.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.0.0.0/8"}
	w.Expect(control.Create(ctx, invalid)).To(Succeed(), "webhooks that are gone are not called")
}

// refusesBesideDeployment: an installed manager works on the same objects.
func (w *world) refusesBesideDeployment() {
	ctx, control := w.t.Context(), w.sandbox.Control.Client
	labels := map[string]string{"a": "b"}
	there := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: coreNamespace, Name: "millwright-core-manager"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		}}
	there.Name = deploymentName(w)
	w.Expect(control.Create(ctx, there)).To(Succeed())
	o, err := parse(w.args, &output{})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(run(ctx, o)).To(MatchError(ContainSubstring("--replicas=0")))
	w.Expect(control.Delete(ctx, there)).To(Succeed())
}

func deploymentName(w *world) string {
	o := &options{root: root(w), webhooks: noWebhooks}
	objects, err := o.read(o.manifests()[0])
	w.Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			return object.GetName()
		}
	}
	return ""
}

func root(w *world) string {
	dir, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	return dir
}

// TestCommandLine: what is missing or wrong is named by the variables of the Makefile.
func TestCommandLine(t *testing.T) {
	both := []string{"-control-kubeconfig=a", "-target-kubeconfig=b"}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":         {nil, "CONTROL_KUBECONFIG is not set"},
		"no target":       {[]string{"-control-kubeconfig=a"}, "TARGET_KUBECONFIG is not set"},
		"provider":        {append(both, "-providers=aws,ibm"), `PROVIDERS: there is no provider "ibm": give some of aws,azure,gcp`},
		"no provider":     {append(both, "-providers="), "PROVIDERS is empty"},
		"webhooks":        {append(both, "-webhooks=yes"), `WEBHOOKS: "yes" is neither none, nor localhost`},
		"webhooks on lo":  {append(both, "-webhooks=127.0.0.1"), "WEBHOOKS"},
		"certificate":     {append(both, "-webhooks=localhost", "-flags=core=--v=4 --leader-elect-resource-namespace=a"), "leave it out, or give WEBHOOKS=none"},
		"unknown manager": {append(both, "-flags=azure=--v=4"), `flags for "azure", which is not started: core, aws, cloudconfig are`},
		"no flags":        {append(both, "-flags=core"), "it is not NAME=FLAGS"},
		"quotes":          {append(both, `-flags=core=--node-conditions="A,B"`), "quotes and backslashes are not interpreted"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(test.args, &output{})
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// TestKubeconfigs that lead nowhere are named with what is wrong, and nothing of their content.
func TestKubeconfigs(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := apierrors.NewUnauthorized("no").Status()
		w.WriteHeader(int(status.Code))
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, status.Reason, status.Code)
	}))
	defer refusing.Close()
	forbidding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer forbidding.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, test := range map[string]struct{ content, want string }{
		"not yaml":      {"secret: [", "is not a kubeconfig"},
		"no context":    {"apiVersion: v1\nkind: Config\n", "has no current context: set one with kubectl config use-context"},
		"no such one":   {"apiVersion: v1\nkind: Config\ncurrent-context: b\n", `the current context "b"`},
		"unknown user":  {kubeconfigOf(refusing.URL), "does not know who the kubeconfig says you are"},
		"forbidden":     {kubeconfigOf(forbidding.URL), "refuses to be used"},
		"nothing there": {kubeconfigOf(closed.URL), "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "kubeconfig")
			g.Expect(os.WriteFile(path, []byte(test.content), 0o600)).To(Succeed())
			_, err := connect(t.Context(), "TARGET_KUBECONFIG", path, requestTimeout)
			g.Expect(err).To(MatchError(And(HavePrefix("TARGET_KUBECONFIG"), ContainSubstring(path), ContainSubstring(test.want))))
			g.Expect(err.Error()).NotTo(ContainSubstring("secret"))
		})
	}
	_, err := connect(t.Context(), "CONTROL_KUBECONFIG", "/nowhere/kubeconfig", requestTimeout)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("CONTROL_KUBECONFIG: open /nowhere/kubeconfig: no such file")))
}

// TestMakeStart: make passes on what it is given.
func TestMakeStart(t *testing.T) {
	g := NewWithT(t)
	dir, err := controlplane.Root()
	g.Expect(err).NotTo(HaveOccurred())
	dry := exec.CommandContext(t.Context(), "make", "--dry-run", "start", "CONTROL_KUBECONFIG=a", "TARGET_KUBECONFIG=b", "PROVIDERS=aws,gcp",
		"WEBHOOKS=localhost", "CORE_FLAGS=--v=4 it's", "AWS_FLAGS=--orphan-policy=report --v=3")
	dry.Dir = dir
	printed, err := dry.Output()
	g.Expect(err).NotTo(HaveOccurred())
	lines := strings.Split(strings.TrimSpace(string(printed)), "\n")
	g.Expect(lines[len(lines)-1]).To(HaveSuffix(`-control-kubeconfig "a" -target-kubeconfig "b" -providers "aws,gcp" -webhooks "localhost" `+
		`-flags 'core=--v=4 it'\''s' -flags 'aws=--orphan-policy=report --v=3'`), "the shell gets it as it was given")
}

// TestHomeInAPath: within the quotes of the Makefile no shell expands ~.
func TestHomeInAPath(t *testing.T) {
	g := NewWithT(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	o, err := parse([]string{"-control-kubeconfig=~/control.yaml", "-target-kubeconfig=~other/target.yaml"}, &output{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.control).To(Equal(filepath.Join(home, "control.yaml")))
	here, err := os.Getwd()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.target).To(Equal(filepath.Join(here, "~other", "target.yaml")), "only a shell can expand another user's home")
}

// TestWhereWebhooksMayBe: by an IPv4 address of this computer, which an EndpointSlice has, and by nothing else that looks like one.
func TestWhereWebhooksMayBe(t *testing.T) {
	for where, want := range map[string]bool{
		"none": true, "localhost": true, "192.0.2.1": true, "": false, "127.0.0.1": false, "::1": false, "2001:db8::1": false, "host.example": false,
	} {
		NewWithT(t).Expect(checkWebhooks(where) == nil).To(Equal(want), where)
	}
}

// TestProvidersAndFlags: commas or spaces stand between providers; only webhooks bind the core to its namespace.
func TestProvidersAndFlags(t *testing.T) {
	g := NewWithT(t)
	lease := "-flags=core=" + leaseNamespaceFlag + "=a"
	for _, args := range [][]string{{"-providers=aws gcp,azure", lease}, {"-providers=aws, gcp, azure", "-webhooks=localhost"}} {
		o, err := parse(append([]string{"-control-kubeconfig=a", "-target-kubeconfig=b"}, args...), &output{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(o.providers).To(ConsistOf("aws", "gcp", "azure"))
	}
}

// TestExitCode: make depends only on it, and --help is no failure.
func TestExitCode(t *testing.T) {
	for args, want := range map[string]int{"-h": 0, "-providers=none": 1} {
		g := NewWithT(t)
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), asProgram+"="+args)
		said, _ := command.CombinedOutput()
		g.Expect(command.ProcessState.ExitCode()).To(Equal(want), "%s", said)
		g.Expect(strings.Contains(string(said), "start: CONTROL_KUBECONFIG")).To(Equal(want == 1), "%s", said)
	}
}
