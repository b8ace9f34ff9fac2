package main

import (
	"context"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver/manager"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
	"millwright.dev/test/testenv"
	"millwright.dev/test/testenv/machines"
)

const testToken = "token-of-the-provider"

var (
	c      client.Client
	config *rest.Config
	sim    *cloud.Cloud
)

func TestMain(m *testing.M) {
	os.Exit(machines.Main(m, machines.Suite{
		CRDs: []testenv.CRDs{testenv.ExampleCRDs}, AddToScheme: examplev1.AddToScheme, OwnNamespace: testOptions().OwnNamespace(), Start: start,
	}))
}

// start opens a cloud for the provider.
func start(env *testenv.Env, client client.Client, directory string) (provider func(context.Context) error, stop func(), err error) {
	c, config = client, env.Config
	sim = cloud.New(
		cloud.Options{Delays: cloud.Delays{Step: 20 * time.Millisecond, Start: 50 * time.Millisecond, Delete: 50 * time.Millisecond}},
	)
	server := httptest.NewServer(sim)
	if err := machines.SetFile(directory, "EXAMPLE_TOKEN_FILE", []byte(testToken+"\n")); err != nil {
		return nil, nil, err
	}
	if err := os.Setenv("EXAMPLE_ENDPOINT", server.URL); err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error { return run(ctx, testOptions()) }, server.Close, nil
}

func testOptions() *manager.Options {
	return machines.Options(manager.NewOptions(name, new(instance.Driver).Traits()))
}

// fixture is a namespace and an account of its own.
type fixture struct {
	*machines.Fixture[*examplev1.ExampleMachine]
	account string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Fixture: machines.New[*examplev1.ExampleMachine](t, c, "example-")}
	f.account = f.Namespace
	sim.AddAccount(f.account, testToken)
	return f
}

// machine creates a machine with all that it needs.
func (f *fixture) machine(name string) *examplev1.ExampleMachine {
	m := &examplev1.ExampleMachine{
		Spec: examplev1.ExampleMachineSpec{Account: f.account, Zones: []string{"a", "b"}, MachineType: "small", Image: "node-v1"},
	}
	f.Create(name, m)
	return m
}

// fault adds a fault to the account of the test alone.
func (f *fixture) fault(fault cloud.Fault) {
	match := fault.Match
	fault.Match = func(call cloud.Call) bool { return call.Account == f.account && (match == nil || match(call)) }
	sim.AddFault(fault)
}

func (f *fixture) resources() []string { return sim.Resources(f.account, nil) }
