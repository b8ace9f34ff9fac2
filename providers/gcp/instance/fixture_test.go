package instance_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

const (
	project = "millwright-test"
	zoneA   = "us-central1-a"
	zoneB   = "us-central1-b"
	token   = "token-of-the-test"
)

var scope = driver.Scope{Location: project}

// fixture is a driver on a simulated cloud, and a clock that the test steps.
type fixture struct {
	*WithT
	*instance.Driver
	cloud *compute.Server
	clock *clocktesting.FakeClock
	token string
	ctx   context.Context
	// tokenErr is why there is no token; refused is how often one was refused.
	tokenErr error
	refused  int
}

func newFixture(t testing.TB, options compute.Options) *fixture {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	options.Clock, options.Tokens = clk, []string{token}
	options.Delays = compute.Delays{Pending: time.Second, Provisioning: time.Second, Staging: time.Second, Stopping: time.Second}
	f := &fixture{WithT: NewWithT(t), cloud: compute.New(options), clock: clk, token: token, ctx: t.Context()}
	t.Cleanup(f.cloud.Close)
	f.Driver = instance.New("http://cloud/compute/v1", direct{f.cloud}, f)
	return f
}

// Token is that of the test.
func (f *fixture) Token(context.Context) (string, error) { return f.token, f.tokenErr }

// Refused counts.
func (f *fixture) Refused(string) { f.refused++ }

// fixedToken is a token, or why there is none.
type fixedToken struct {
	token string
	err   error
}

func (f fixedToken) Token(context.Context) (string, error) { return f.token, f.err }

func (f fixedToken) Refused(string) {}

// direct calls a handler without sockets.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (response *http.Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			response, err = nil, errors.Errorf("connection broke: %v", v)
			if r.Context().Err() != nil {
				err = r.Context().Err()
			}
		}
	}()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// settle lets everything happen that is under way.
func (f *fixture) settle() { f.clock.Step(30 * time.Second) }

type gcpLaunch = driver.Launch[*infrav1.GCPMachine]

// launch is the n-th attempt of a machine in a zone.
func launch(zone, name string, attempt int, changes ...func(*infrav1.GCPMachineSpec)) gcpLaunch {
	id := fmt.Sprintf("mw-%s-%s-%d", zone, name, attempt)
	l := gcpLaunch{
		Object: &infrav1.GCPMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: infrav1.GCPMachineSpec{
				Project: project, Zones: []string{zoneA, zoneB}, MachineType: "e2-standard-2", FallbackMachineTypes: []string{"e2-standard-4"},
				Image: infrav1.ImageReference{Project: "images", Family: "node"}, Labels: map[string]infrav1.LabelValue{"team": "blue"},
			},
		},
		Scope: scope, Token: id, RequestID: driver.LaunchRequestID(id), Name: name, OwnerUID: apitypes.UID("uid-" + name), Owner: "ns/" + name,
		Lineage: "u_e_1", Attempt: attempt, ClusterName: "c", UserData: []byte("#cloud-config\n"),
		Placement: driver.Placement{ID: zone, FailureDomain: zone, InstanceType: "e2-standard-2"},
	}
	for _, change := range changes {
		change(&l.Object.Spec)
	}
	l.Placement.InstanceType = l.Object.Spec.MachineType
	return l
}

// handle is what the kit knows of a launch before its instance is certain.
func handle(l gcpLaunch, operation string) driver.Handle {
	return driver.Handle{
		Scope:     scope,
		Token:     l.Token,
		Name:      l.Name,
		Placement: l.Placement,
		Attempt:   l.Attempt,
		Operation: operation,
		OwnerUID:  l.OwnerUID,
		Owner:     l.Owner,
	}
}

// accepted launches and returns the handle.
func (f *fixture) accepted(l gcpLaunch) driver.Handle {
	answer, err := f.Create(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(answer.Operation).NotTo(BeEmpty())
	f.Expect(answer.Instance.ProviderID).To(BeEmpty(), "it is not certain yet")
	return handle(l, answer.Operation)
}

// running launches, waits and returns the handle with the provider ID.
func (f *fixture) running(l gcpLaunch) driver.Handle {
	h := f.accepted(l)
	f.settle()
	h.ProviderID = f.observe(h).Value.ProviderID
	f.Expect(h.ProviderID).NotTo(BeEmpty())
	return h
}

func (f *fixture) observe(h driver.Handle) driver.Answer[driver.Instance] {
	return f.Observe(f.ctx, scope, []driver.Handle{h})[0]
}

func (f *fixture) fault(fault simulator.Fault) { f.cloud.AddFault(fault) }

// count is how often a method was called.
func (f *fixture) count(action string) (n int) {
	for _, c := range f.cloud.Calls() {
		if c.Action == action || action == "" {
			n++
		}
	}
	return n
}

// class expects an error of a class.
func (f *fixture) class(err error, class driver.Class) {
	f.Expect(err).To(HaveOccurred())
	f.Expect(driver.ClassOf(err)).To(Equal(class), err.Error())
}
