package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
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

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/azure/session"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/manager"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/azure/entra"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/testenv"
)

// groups are the resource groups that tests take, one each.
const groups = 20

var (
	env *testenv.Env
	c   client.Client
	sim *arm.Server
	// authority gives out the tokens of identities; that of the provider's process is ownToken.
	authority = entra.New(clock.RealClock{})
	// free has the resource groups that no test has taken.
	free = make(chan string, groups)
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
	env, err = testenv.Start(testenv.Options{CRDs: []testenv.CRDs{testenv.CoreCRDs, testenv.AzureCRDs, testenv.CloudConfigCRDs}})
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
	catalog := arm.DefaultCatalog()
	for i := range groups {
		name := fmt.Sprintf("group-%d", i)
		catalog.Groups = append(catalog.Groups, arm.Group{Subscription: arm.DefaultSubscription, Name: name})
		free <- name
	}
	sim = arm.New(arm.Options{Catalog: catalog, Authorize: authorize, Delays: arm.Delays{Create: 50 * time.Millisecond, Delete: 50 * time.Millisecond}})
	defer sim.Close()
	server, login := httptest.NewServer(sim), httptest.NewServer(authority)
	defer server.Close()
	defer login.Close()

	directory, err := os.MkdirTemp("", "azure-provider")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	kubeconfig := filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.Kubeconfig, 0o600); err != nil {
		return 0, err
	}
	if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, testOptions(), func() (session.Config, error) { return configOf(server.URL, login.Listener.Addr().String()), nil })
	}()
	code := m.Run()
	cancel()
	return code, testenv.Ended(<-ended)
}

// token is a credential that gives out one token.
type token string

func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

const ownToken = "token"

// authorize lets the provider's process do everything, and identities what the authority says.
func authorize(token, subscription string) (caller, code string) {
	if token == ownToken {
		return token, ""
	}
	return authority.Authorize(token, subscription)
}

func configOf(url, login string) session.Config {
	transport := &http.Client{Transport: &entra.Redirect{Host: "login.example.com", To: login, Next: http.DefaultTransport}}
	return session.Config{Credential: token(ownToken), InsecureHTTP: true, Transport: transport, Cloud: cloud.Configuration{
		ActiveDirectoryAuthorityHost: "https://login.example.com/",
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: url, Audience: "https://management.azure.com"},
		},
	}}
}

func testOptions() *manager.Options {
	options := newOptions()
	options.AddFlags(pflag.NewFlagSet("test", pflag.ContinueOnError))
	options.HealthAddr, options.Diagnostics.Address = "0", "0"
	options.Diagnostics.Insecure = true
	options.InventoryFast, options.InventorySlow = 200*time.Millisecond, time.Second
	// What may still be on its way is waited for twice as long.
	options.CloudTimeout = 5 * time.Second
	return options
}

// fixture is a namespace and a resource group of its own.
type fixture struct {
	*WithT
	ctx       context.Context
	namespace string
	group     string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	g := NewWithT(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "azure-"}}
	g.Expect(c.Create(t.Context(), namespace)).To(Succeed())
	f := &fixture{WithT: g, ctx: t.Context(), namespace: namespace.Name, group: <-free}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "green"},
		Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}}}
	g.Expect(c.Create(f.ctx, cluster)).To(Succeed())
	provisioned := true
	cluster.Status.Initialization.InfrastructureProvisioned = &provisioned
	g.Expect(c.Status().Update(f.ctx, cluster)).To(Succeed())
	return f
}

// machine creates bootstrap data, a Machine and the AzureMachine that it owns.
func (f *fixture) machine(name string, changes ...func(*infrav1.AzureMachineSpec)) *infrav1.AzureMachine {
	f.Expect(c.Create(f.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}, Data: map[string][]byte{"value": []byte("#cloud-config\n")},
	})).To(Succeed())
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: "green", Bootstrap: clusterv1.Bootstrap{DataSecretName: &name},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "AzureMachine", Name: name},
		},
	}
	f.Expect(c.Create(f.ctx, owner)).To(Succeed())
	m := &infrav1.AzureMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "green"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))},
		},
		Spec: validSpec(),
	}
	m.Spec.ResourceGroup = f.group
	for _, change := range changes {
		change(&m.Spec)
	}
	f.Expect(c.Create(f.ctx, m)).To(Succeed())
	return m
}

// ready returns "status reason: message" of the condition Ready.
func (f *fixture) ready(m *infrav1.AzureMachine) func() string {
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

// fault goes wrong in the resource group of the test alone.
func (f *fixture) fault(fault simulator.Fault) {
	fault.Parameters = map[string]string{"resourceGroup": f.group}
	sim.AddFault(fault)
}

// resources are what there is in the resource group.
func (f *fixture) resources() []string {
	var found []string
	for _, r := range sim.Resources() {
		if r.Tags[instance.TagCluster] == f.namespace+"/green" {
			found = append(found, r.Kind)
		}
	}
	return found
}

// calls counts those of an action in the resource group, with their answers.
func (f *fixture) calls(action string) map[int]int {
	found := map[int]int{}
	for _, call := range sim.Calls() {
		if call.Action == action && call.Parameters["resourceGroup"] == f.group {
			found[call.Status]++
		}
	}
	return found
}

// deleted deletes a machine and waits until it is gone.
func (f *fixture) deleted(m *infrav1.AzureMachine) {
	f.Expect(c.Delete(f.ctx, m)).To(Succeed())
	f.Eventually(func() string { return f.ready(m)() }).Should(ContainSubstring("not found"))
	f.Expect(f.resources()).To(BeEmpty(), "the object stays until nothing is left")
}
