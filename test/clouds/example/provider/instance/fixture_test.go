package instance_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

const (
	account = "acme"
	token   = "token-of-acme"
)

var scope = driver.Scope{Location: account}

// fixture is a driver on a simulated cloud with one account, and a clock that the test steps.
type fixture struct {
	*WithT
	*instance.Driver
	cloud *cloud.Cloud
	clock *clocktesting.FakeClock
	token string
	ctx   context.Context
}

func newFixture(t testing.TB, options cloud.Options) *fixture {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	options.Clock = clk
	c := cloud.New(options)
	c.AddAccount(account, token)
	f := &fixture{WithT: NewWithT(t), cloud: c, clock: clk, token: token, ctx: t.Context()}
	f.Driver = instance.New("http://cloud", c.Transport(), func(context.Context, driver.Scope) (string, error) { return f.token, nil })
	return f
}

// settle completes everything that is under way.
func (f *fixture) settle() { f.clock.Step(30 * time.Second) }

// launch is the n-th attempt of a machine in a zone.
func launch(zone, name string, attempt int) driver.Launch[*examplev1.ExampleMachine] {
	id := fmt.Sprintf("%s-%s-%d", zone, name, attempt)
	return driver.Launch[*examplev1.ExampleMachine]{
		Object: &examplev1.ExampleMachine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: examplev1.ExampleMachineSpec{
				Account: account, Zones: []string{"a", "b"}, MachineType: "small", FallbackMachineTypes: []string{"large"}, Image: "node-v1",
				Labels: map[string]examplev1.LabelValue{"team": "blue"},
			},
		},
		Scope:       scope,
		Token:       id,
		RequestID:   driver.RequestID(id, "create"),
		Name:        name,
		OwnerUID:    apitypes.UID("uid-" + name),
		Owner:       "ns/" + name,
		Lineage:     "u_e_1",
		Attempt:     attempt,
		ClusterName: "c",
		Placement:   driver.Placement{ID: zone, FailureDomain: zone, InstanceType: "small"},
		UserData:    []byte("secret"),
	}
}

// handle is what the kit has of a launch before its instance is certain.
func handle(l driver.Launch[*examplev1.ExampleMachine], operation string) driver.Handle {
	return driver.Handle{
		Scope: scope, Token: l.Token, Name: l.Name, Placement: l.Placement, Attempt: l.Attempt, Operation: operation,
		OwnerUID: l.OwnerUID, Owner: l.Owner,
	}
}

// accepted launches and returns the handle.
func (f *fixture) accepted(l driver.Launch[*examplev1.ExampleMachine]) driver.Handle {
	answer, err := f.Create(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(answer.Operation).NotTo(BeEmpty())
	return handle(l, answer.Operation)
}

// running launches, waits and returns the handle with the provider ID.
func (f *fixture) running(l driver.Launch[*examplev1.ExampleMachine]) driver.Handle {
	h := f.accepted(l)
	f.settle()
	h.ProviderID = f.observe(h).Value.ProviderID
	f.Expect(h.ProviderID).NotTo(BeEmpty())
	return h
}

func (f *fixture) observe(h driver.Handle) driver.Answer[driver.Instance] {
	return f.Observe(f.ctx, scope, []driver.Handle{h})[0]
}

// clean calls Cleanup until nothing is left, and returns how often.
func (f *fixture) clean(h driver.Handle) int {
	for n := range 10 {
		answer := f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]
		f.Expect(answer.Err).NotTo(HaveOccurred())
		if len(answer.Value) == 0 {
			return n + 1
		}
		f.settle()
	}
	return -1
}

// class expects an error of a class.
func (f *fixture) class(err error, class driver.Class) {
	f.Expect(err).To(HaveOccurred())
	f.Expect(driver.ClassOf(err)).To(Equal(class), err.Error())
}
