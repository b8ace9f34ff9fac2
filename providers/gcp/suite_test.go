package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver/manager"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/credentials"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/gcp/iam"
	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/testenv"
	"millwright.dev/test/testenv/machines"
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
	os.Exit(machines.Main(m, machines.Suite{
		CRDs: []testenv.CRDs{testenv.GCPCRDs}, AddToScheme: infrav1.AddToScheme, OwnNamespace: testOptions().OwnNamespace(), Start: start,
	}))
}

// start opens a cloud for the provider, which has the key of a service account, and what gives tokens to its identities.
func start(e *testenv.Env, client client.Client, directory string) (provider func(context.Context) error, stop func(), err error) {
	env, c = e, client
	const step = 50 * time.Millisecond
	accounts = iam.New(clock.RealClock{})
	tokens := httptest.NewServer(accounts)
	at = &endpoints{tokens: credentials.Endpoints{OAuth2: tokens.URL, STS: tokens.URL, IAMCredentials: tokens.URL}}
	sim = compute.New(
		compute.Options{Tokens: []string{testToken}, Access: accounts, Delays: compute.Delays{Provisioning: step, Staging: step, Stopping: step}},
	)
	server := httptest.NewServer(sim)
	at.compute = server.URL + "/compute/v1"
	tokenDirectory = filepath.Join(directory, "tokens")
	if err := os.Mkdir(tokenDirectory, 0o700); err != nil {
		return nil, nil, err
	}
	if err := setEnvironment(directory, server.URL); err != nil {
		return nil, nil, err
	}
	provider = func(ctx context.Context) error { return run(ctx, testOptions(), at) }
	return provider, func() { server.Close(); sim.Close(); tokens.Close() }, nil
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
	return machines.SetFile(directory, "GOOGLE_APPLICATION_CREDENTIALS", credentials)
}

func testOptions() *manager.Options {
	options := machines.Options(newOptions())
	options.Identities.TokenDirectories = []string{tokenDirectory}
	options.WatchFilter = suiteFilter
	return options
}

// fixture is a namespace and a project of its own.
type fixture struct {
	*machines.Fixture[*infrav1.GCPMachine]
	t       *testing.T
	project string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	return newFixtureBeside(t)
}

// newFixtureBeside is another one of the same test.
func newFixtureBeside(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Fixture: machines.New[*infrav1.GCPMachine](t, c, "project-"), t: t}
	f.project = f.Namespace
	sim.AddProject(f.project)
	f.watched(suiteFilter)
	return f
}

// watched has what the test makes from now on be of the provider with that filter.
func (f *fixture) watched(filter string) { f.Labels = map[string]string{clusterv1.WatchLabel: filter} }

// spec is one that is accepted, in the project of the test.
func (f *fixture) spec() infrav1.GCPMachineSpec {
	return infrav1.GCPMachineSpec{
		Project: f.project, Zones: []string{"us-central1-a", "us-central1-b"}, MachineType: "e2-standard-2",
		Image: infrav1.ImageReference{Project: "images", Family: "node"},
	}
}

// labels are those of what the provider is to watch.
func (f *fixture) labels() map[string]string {
	return map[string]string{clusterv1.ClusterNameLabel: "green", clusterv1.WatchLabel: f.Labels[clusterv1.WatchLabel]}
}

// machine creates a machine with all that it needs.
func (f *fixture) machine(name string, changes ...func(*infrav1.GCPMachineSpec)) *infrav1.GCPMachine {
	m := &infrav1.GCPMachine{Spec: f.spec()}
	for _, change := range changes {
		change(&m.Spec)
	}
	f.Create(name, m)
	return m
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
	f.Delete(m)
	f.Expect(sim.Instances(f.project)).To(BeEmpty(), "the object stays until nothing is left")
	f.Expect(sim.Disks(f.project)).To(BeEmpty())
}
