package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/manager"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/credentials"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/gcp/iam"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/testenv"
)

const (
	testToken = "token-of-the-provider"
	// suiteFilter is what the provider of the suite watches.
	suiteFilter = "suite"
)

var (
	env *testenv.Env
	c   client.Client
	sim *compute.Server
	// accounts give tokens to GCPIdentities; tokenDirectory is where those may name files.
	accounts       *iam.Service
	at             *endpoints
	tokenDirectory string
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	flag.Parse()
	if !testing.Verbose() {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	ctrl.SetLogger(klog.Background())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// runTests runs the provider as its main does, with the key of a service account, on an API server and a cloud of this process.
func runTests(m *testing.M) (int, error) {
	var err error
	env, err = testenv.Start(testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs, testenv.GCPCRDs}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = env.Stop() }()
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme}
	if err := kinds.AddToScheme(scheme); err != nil {
		return 0, err
	}
	if c, err = client.New(env.Config, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: testOptions().OwnNamespace()}}
	if err := c.Create(context.Background(), own); err != nil {
		return 0, err
	}
	const step = 50 * time.Millisecond
	accounts = iam.New(clock.RealClock{})
	tokens := httptest.NewServer(accounts)
	defer tokens.Close()
	at = &endpoints{tokens: credentials.Endpoints{OAuth2: tokens.URL, STS: tokens.URL, IAMCredentials: tokens.URL}}
	sim = compute.New(compute.Options{Tokens: []string{testToken}, Access: accounts, Delays: compute.Delays{Provisioning: step, Staging: step, Stopping: step}})
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()
	directory, err := os.MkdirTemp("", "gcp-provider")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	tokenDirectory = filepath.Join(directory, "tokens")
	if err := os.Mkdir(tokenDirectory, 0o700); err != nil {
		return 0, err
	}
	if err := setEnvironment(directory, server.URL); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	at.compute = server.URL + "/compute/v1"
	go func() { ended <- run(ctx, testOptions(), at) }()
	code := m.Run()
	cancel()
	return code, testenv.Ended(<-ended)
}

// setEnvironment is what a Deployment would set.
func setEnvironment(directory, cloud string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	credentials, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "provider@p.iam.gserviceaccount.com", "private_key_id": "k", "token_uri": cloud + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	})
	if err != nil {
		return err
	}
	for variable, content := range map[string][]byte{"KUBECONFIG": env.Kubeconfig, "GOOGLE_APPLICATION_CREDENTIALS": credentials} {
		file := filepath.Join(directory, variable)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
		if err := os.Setenv(variable, file); err != nil {
			return err
		}
	}
	return nil
}

func testOptions() *manager.Options {
	options := newOptions()
	options.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	options.HealthAddr, options.Diagnostics.Address = "0", "0"
	options.Diagnostics.Insecure = true
	options.Identities.TokenDirectories = []string{tokenDirectory}
	options.WatchFilter = suiteFilter
	options.InventoryFast, options.InventorySlow = 200*time.Millisecond, time.Second
	return options
}

// fixture is a namespace and a project of its own.
type fixture struct {
	*WithT
	t         *testing.T
	ctx       context.Context
	namespace string
	project   string
	// watch is which provider has what the test makes.
	watch string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return newFixtureBeside(t)
}

// newFixtureBeside is another one of the same test.
func newFixtureBeside(t *testing.T) *fixture {
	t.Helper()
	g := NewWithT(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "project-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	sim.AddProject(namespace.Name)
	f := &fixture{WithT: g, t: t, ctx: t.Context(), namespace: namespace.Name, project: namespace.Name, watch: suiteFilter}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "green"},
		Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}}}
	g.Expect(c.Create(f.ctx, cluster)).To(Succeed())
	provisioned := true
	cluster.Status.Initialization.InfrastructureProvisioned = &provisioned
	g.Expect(c.Status().Update(f.ctx, cluster)).To(Succeed())
	return f
}

// spec is one that is accepted, in the project of the test.
func (f *fixture) spec() infrav1.GCPMachineSpec {
	return infrav1.GCPMachineSpec{
		Project: f.project, Zones: []string{"us-central1-a", "us-central1-b"}, MachineType: "e2-standard-2",
		Image: infrav1.ImageReference{Project: "images", Family: "node"},
	}
}

// labels are those of what the provider is to watch.
func (f *fixture) labels() map[string]string {
	return map[string]string{clusterv1.ClusterNameLabel: "green", clusterv1.WatchLabel: f.watch}
}

// machine creates bootstrap data, a Machine and the GCPMachine that it owns.
func (f *fixture) machine(name string, changes ...func(*infrav1.GCPMachineSpec)) *infrav1.GCPMachine {
	f.Expect(c.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Data: map[string][]byte{"value": []byte("#cloud-config\n")},
	})).To(Succeed())
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: "green", Bootstrap: clusterv1.Bootstrap{DataSecretName: &name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "GCPMachine", Name: name},
		},
	}
	f.Expect(c.Create(f.ctx, owner)).To(Succeed())
	m := &infrav1.GCPMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.namespace, Name: name, Labels: f.labels(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))},
		},
		Spec: f.spec(),
	}
	for _, change := range changes {
		change(&m.Spec)
	}
	f.Expect(c.Create(f.ctx, m)).To(Succeed())
	return m
}

// ready returns "status reason: message" of the condition Ready.
func (f *fixture) ready(m *infrav1.GCPMachine) func() string {
	return func() string {
		if err := c.Get(f.ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		for _, condition := range m.Status.Conditions {
			if condition.Type == driverv1.ReadyCondition {
				return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
			}
		}
		return "none"
	}
}

// fault goes wrong in the project of the test alone.
func (f *fixture) fault(fault simulator.Fault) {
	if fault.Parameters == nil {
		fault.Parameters = map[string]string{}
	}
	fault.Parameters["project"] = f.project
	sim.AddFault(fault)
}

// calls are how often methods were called in the project of the test.
func (f *fixture) calls() map[string]int {
	found := map[string]int{}
	for _, call := range sim.Calls() {
		if call.Parameters["project"] == f.project {
			found[call.Action]++
		}
	}
	return found
}

// deleted deletes a machine and waits until it is gone, and nothing of it is left.
func (f *fixture) deleted(m *infrav1.GCPMachine) {
	f.Expect(c.Delete(f.ctx, m)).To(Succeed())
	f.Eventually(func() string { return f.ready(m)() }).Should(ContainSubstring("not found"))
	f.Expect(sim.Instances(f.project)).To(BeEmpty(), "the object stays until nothing is left")
	f.Expect(sim.Disks(f.project)).To(BeEmpty())
}
