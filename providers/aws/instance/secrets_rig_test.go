package instance

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simclient"
)

// secretsRig is a driver in front of a simulated account.
type secretsRig struct {
	*WithT
	*Driver
	sim    *simulator.Server
	clock  *clocktesting.FakeClock
	launch driver.Launch[*infrav1.AWSMachine]
	handle driver.Handle
}

func newSecretsRig(t *testing.T, size int, options simulator.Options) *secretsRig {
	t.Helper()
	options.Region = "us-east-1"
	clk := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	options.Clock = clk
	sim := simulator.New(options)
	front := httptest.NewServer(sim)
	t.Cleanup(func() { sim.Close(); front.Close() })
	client := NewClient(aws.Config{
		Region: "us-east-1", HTTPClient: simclient.HTTPClient(), BaseEndpoint: aws.String(front.URL),
		Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", ""),
	})
	r := &secretsRig{WithT: NewWithT(t), sim: sim, clock: clk, launch: testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.UserDataStorage = &infrav1.UserDataStorage{Type: infrav1.UserDataStorageSecretsManager}
	})}
	r.Driver = New(func(context.Context, string) (API, error) { return client, nil }, clk)
	r.launch.Scope = driver.Scope{Location: "us-east-1"}
	r.launch.OwnerUID, r.launch.Owner = "uid-1", "default/m"
	r.launch.Object.Namespace, r.launch.Object.Name = "default", "m"
	r.launch.UserData = noise(size, 1)
	r.handle = driver.Handle{Scope: r.launch.Scope, OwnerUID: r.launch.OwnerUID, Owner: r.launch.Owner}
	return r
}

func noise(size int, seed byte) []byte {
	source := rand.NewChaCha8([32]byte{seed})
	data := make([]byte, size)
	_, _ = source.Read(data)
	return data
}

// stored joins the parts that there are, as an instance does.
func (r *secretsRig) stored() []byte {
	var all []byte
	for n := range r.sim.Secrets() {
		value := r.sim.SecretValue(partName(secretID(r.launch.Owner, r.launch.OwnerUID), n+1))
		line, rest, _ := bytes.Cut(value, []byte("\n"))
		r.Expect(string(line)).To(HavePrefix(fmt.Sprintf("%d %d ", n+1, len(r.sim.Secrets()))))
		all = append(all, rest...)
	}
	return all
}

func (r *secretsRig) asked() string {
	var actions []string
	for _, c := range r.sim.Calls() {
		actions = append(actions, c.Action)
	}
	r.sim.ClearCalls()
	return strings.Join(actions, " ")
}
