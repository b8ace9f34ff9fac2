package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver/manager"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/azure/entra"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/testenv"
	"millwright.dev/test/testenv/machines"
)

// groups are the resource groups that tests take, one each.
const groups = 40

var (
	c   client.Client
	sim *arm.Server
	// authority gives out the tokens of identities; that of the provider's process is ownToken.
	authority = entra.New(clock.RealClock{})
	// free has the resource groups that no test has taken.
	free = make(chan string, groups)
)

func TestMain(m *testing.M) {
	os.Exit(machines.Main(m, machines.Suite{
		CRDs: []testenv.CRDs{testenv.AzureCRDs, testenv.CloudConfigCRDs}, AddToScheme: infrav1.AddToScheme,
		OwnNamespace: testOptions().OwnNamespace(), Start: start,
	}))
}

// start opens a cloud for the provider, and an authority for its identities.
func start(_ *testenv.Env, client client.Client, _ string) (provider func(context.Context) error, stop func(), err error) {
	c = client
	catalog := arm.DefaultCatalog()
	for i := range groups {
		name := fmt.Sprintf("group-%d", i)
		catalog.Groups = append(catalog.Groups, arm.Group{Subscription: arm.DefaultSubscription, Name: name})
		free <- name
	}
	sim = arm.New(
		arm.Options{Catalog: catalog, Authorize: authorize, Delays: arm.Delays{Create: 50 * time.Millisecond, Delete: 50 * time.Millisecond}},
	)
	server, login := httptest.NewServer(sim), httptest.NewServer(authority)
	provider = func(ctx context.Context) error {
		return run(ctx, testOptions(), func() (session.Config, error) { return configOf(server.URL, login.Listener.Addr().String()), nil })
	}
	return provider, func() { server.Close(); login.Close(); sim.Close() }, nil
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
	options := machines.Options(newOptions())
	// What may still be on its way is waited for twice as long.
	options.CloudTimeout = 5 * time.Second
	return options
}

// fixture is a namespace and a resource group of its own.
type fixture struct {
	*machines.Fixture[*infrav1.AzureMachine]
	group string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	select {
	case group := <-free:
		return &fixture{machines.New[*infrav1.AzureMachine](t, c, "azure-"), group}
	default:
		t.Fatalf("all %d resource groups are taken: raise groups", groups)
		return nil
	}
}

// machine creates a machine with all that it needs.
func (f *fixture) machine(name string, changes ...func(*infrav1.AzureMachineSpec)) *infrav1.AzureMachine {
	m := &infrav1.AzureMachine{Spec: validSpec()}
	m.Spec.ResourceGroup = f.group
	for _, change := range changes {
		change(&m.Spec)
	}
	f.Create(name, m)
	return m
}

// fault goes wrong in the resource group of the test alone.
func (f *fixture) fault(fault simulator.Fault) (id string) {
	fault.Parameters = map[string]string{"resourceGroup": f.group}
	return sim.AddFault(fault)
}

// resources are what there is in the resource group.
func (f *fixture) resources() []string {
	var found []string
	for _, r := range sim.Resources() {
		if r.Tags[instance.TagCluster] == f.Namespace+"/green" {
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
	f.Delete(m)
	f.Expect(f.resources()).To(BeEmpty(), "the object stays until nothing is left")
}
