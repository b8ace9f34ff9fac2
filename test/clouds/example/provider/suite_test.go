package main

import (
	"context"
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
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/manager"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
	"millwright.dev/test/testenv"
)

const testToken = "token-of-the-provider"

var (
	env *testenv.Env
	c   client.Client
	sim *cloud.Cloud
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

// runTests runs the provider as its main does, on an API server and a cloud of this process.
func runTests(m *testing.M) (int, error) {
	var err error
	env, err = testenv.Start(testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs, testenv.ExampleCRDs}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = env.Stop() }()
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{clientgoscheme.AddToScheme, clusterv1.AddToScheme, examplev1.AddToScheme}
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
	sim = cloud.New(cloud.Options{Delays: cloud.Delays{Step: 20 * time.Millisecond, Start: 50 * time.Millisecond, Delete: 50 * time.Millisecond}})
	server := httptest.NewServer(sim)
	defer server.Close()

	directory, err := os.MkdirTemp("", "example-provider")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	if err := setEnvironment(directory, server.URL); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, testOptions()) }()
	code := m.Run()
	cancel()
	return code, testenv.Ended(<-ended)
}

// setEnvironment is what a Deployment would set.
func setEnvironment(directory, endpoint string) error {
	for variable, content := range map[string][]byte{"KUBECONFIG": env.Kubeconfig, "EXAMPLE_TOKEN_FILE": []byte(testToken + "\n")} {
		file := filepath.Join(directory, variable)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
		if err := os.Setenv(variable, file); err != nil {
			return err
		}
	}
	return os.Setenv("EXAMPLE_ENDPOINT", endpoint)
}

func testOptions() *manager.Options {
	options := manager.NewOptions(name, new(instance.Driver).Traits())
	options.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	options.HealthAddr, options.Diagnostics.Address = "0", "0"
	options.Diagnostics.Insecure = true
	options.InventoryFast, options.InventorySlow = 200*time.Millisecond, time.Second
	return options
}

// fixture is a namespace and an account of its own.
type fixture struct {
	*WithT
	ctx       context.Context
	namespace string
	account   string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	g := NewWithT(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "example-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	sim.AddAccount(namespace.Name, testToken)
	f := &fixture{WithT: g, ctx: t.Context(), namespace: namespace.Name, account: namespace.Name}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "green"},
		Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}}}
	g.Expect(c.Create(f.ctx, cluster)).To(Succeed())
	provisioned := true
	cluster.Status.Initialization.InfrastructureProvisioned = &provisioned
	g.Expect(c.Status().Update(f.ctx, cluster)).To(Succeed())
	return f
}

// machine creates bootstrap data, a Machine and the ExampleMachine that it owns.
func (f *fixture) machine(name string) *examplev1.ExampleMachine {
	f.Expect(c.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Data: map[string][]byte{"value": []byte("#cloud-config\n")},
	})).To(Succeed())
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: "green", Bootstrap: clusterv1.Bootstrap{DataSecretName: &name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: examplev1.GroupVersion.Group, Kind: "ExampleMachine", Name: name},
		},
	}
	f.Expect(c.Create(f.ctx, owner)).To(Succeed())
	m := &examplev1.ExampleMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "green"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))},
		},
		Spec: examplev1.ExampleMachineSpec{Account: f.account, Zones: []string{"a", "b"}, MachineType: "small", Image: "node-v1"},
	}
	f.Expect(c.Create(f.ctx, m)).To(Succeed())
	return m
}

// ready returns "status reason: message" of the condition Ready.
func (f *fixture) ready(m *examplev1.ExampleMachine) func() string {
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

// fault goes wrong in the account of the test alone.
func (f *fixture) fault(fault cloud.Fault) {
	match := fault.Match
	fault.Match = func(call cloud.Call) bool { return call.Account == f.account && (match == nil || match(call)) }
	sim.AddFault(fault)
}

func (f *fixture) resources() []string { return sim.Resources(f.account, nil) }

// deleted deletes a machine and waits until it is gone.
func (f *fixture) deleted(m *examplev1.ExampleMachine) {
	f.Expect(c.Delete(f.ctx, m)).To(Succeed())
	f.Eventually(func() string { return f.ready(m)() }).Should(ContainSubstring("not found"))
}
