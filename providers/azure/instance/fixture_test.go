package instance_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

const (
	creation = 30 * time.Second
	deletion = 20 * time.Second
	userData = "#cloud-config\n# a secret\n"
)

// scope is that of all machines here, in lower case although the resource group is not.
var scope = driver.Scope{Location: arm.DefaultSubscription + "/" + strings.ToLower(arm.DefaultGroup)}

// tokens is a credential; an error of it concerns no other credential.
type tokens struct {
	token string
	err   error
}

// jwt is a token with claims.
func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
}

func (c *tokens) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: cmp.Or(c.token, "token"), ExpiresOn: time.Now().Add(time.Hour)}, c.err
}

// fixture is a Driver on a simulated tenant, through the SDK and HTTP.
type fixture struct {
	*WithT
	*instance.Driver
	ctx    context.Context
	clock  *clocktesting.FakeClock
	cloud  *arm.Server
	tokens *tokens
}

func newFixture(t *testing.T, options arm.Options) *fixture {
	t.Helper()
	f := &fixture{
		WithT:  NewWithT(t),
		ctx:    t.Context(),
		tokens: &tokens{},
		clock:  clocktesting.NewFakeClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)),
	}
	options.Clock, options.Seed = f.clock, 1
	options.Delays = arm.Delays{Create: creation, Delete: deletion, Power: 10 * time.Second}
	f.cloud = arm.New(options)
	front := httptest.NewServer(f.cloud)
	t.Cleanup(front.Close)
	t.Cleanup(f.cloud.Close)
	f.Driver = instance.New(session.Config{
		Credential: f.tokens, Cloud: at(front.URL), InsecureHTTP: true,
		// Connections of its own: those that a test cuts belong to no other test.
		Transport: &http.Client{Transport: &http.Transport{}},
	}, f.clock)
	return f
}

func at(url string) cloud.Configuration {
	return cloud.Configuration{
		ActiveDirectoryAuthorityHost: "https://login.example.com/",
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: url, Audience: "https://management.azure.com"},
		},
	}
}

// spec is a right one, with changes.
func spec(changes ...func(*infrav1.AzureMachineSpec)) infrav1.AzureMachineSpec {
	s := infrav1.AzureMachineSpec{
		SubscriptionID: arm.DefaultSubscription, ResourceGroup: arm.DefaultGroup, Location: arm.DefaultLocation, Zones: []string{"1", "2"},
		VMSize: "Standard_D2s_v5", Image: infrav1.Image{ID: arm.DefaultImage}, SubnetID: arm.DefaultSubnet,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// launch is the first attempt of a machine in zone 1.
func launch(name string, changes ...func(*infrav1.AzureMachineSpec)) driver.Launch[*infrav1.AzureMachine] {
	m := &infrav1.AzureMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec(changes...)}
	uid := types.UID("uid-of-" + name)
	l := driver.Launch[*infrav1.AzureMachine]{
		Object:      m,
		Scope:       scope,
		Token:       "token-of-" + name,
		Name:        name,
		OwnerUID:    uid,
		Owner:       "default/" + name,
		Attempt:     1,
		Lineage:     "cluster_epoch_1",
		ClusterName: "green",
		UserData:    []byte(userData),
	}
	l.Placement = driver.Placement{ID: arm.DefaultLocation + "-1", FailureDomain: "1", InstanceType: m.Spec.VMSize}
	if len(m.Spec.Zones) == 0 {
		l.Placement.ID, l.Placement.FailureDomain = arm.DefaultLocation, ""
	}
	return l
}

func handle(l driver.Launch[*infrav1.AzureMachine]) driver.Handle {
	return driver.Handle{
		Scope:     scope,
		Token:     l.Token,
		Name:      l.Name,
		Placement: l.Placement,
		Attempt:   l.Attempt,
		OwnerUID:  l.OwnerUID,
		Owner:     l.Owner,
	}
}

// accepted launches a machine and returns its handle.
func (f *fixture) accepted(l driver.Launch[*infrav1.AzureMachine]) driver.Handle {
	out, err := f.Create(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	h := handle(l)
	h.ProviderID = out.Instance.ProviderID
	f.Expect(h.Owns(out.Instance)).To(BeTrue())
	return h
}

func (f *fixture) running(l driver.Launch[*infrav1.AzureMachine]) driver.Handle {
	h := f.accepted(l)
	f.clock.Step(creation)
	return h
}

func (f *fixture) observe(h driver.Handle) driver.Answer[driver.Instance] {
	return f.Observe(f.ctx, scope, []driver.Handle{h})[0]
}

func (f *fixture) list() []driver.Instance {
	out, err := f.List(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	return out
}

func (f *fixture) deleted(h driver.Handle) {
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.clock.Step(deletion)
	f.class(f.observe(h).Err, driver.ClassNotFound)
}

// cleaned is what is left of a machine, in two looks: the first asks for its end.
func (f *fixture) cleaned(h driver.Handle) (first, second []string) {
	for _, into := range []*[]string{&first, &second} {
		answer := f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]
		f.Expect(answer.Err).NotTo(HaveOccurred())
		*into = answer.Value
	}
	return first, second
}

func (f *fixture) class(err error, want driver.Class) {
	f.Expect(driver.ClassOf(err)).To(Equal(want), "%v", err)
}

// unknown has a call end by its deadline with an outcome that is not known. On a computer that is busy the time may be over before
// anything was sent, and the call gets more.
func (f *fixture) unknown(call func(context.Context) error) {
	var err error
	for limit := 50 * time.Millisecond; limit < time.Minute && driver.ClassOf(err) != driver.ClassUnknown; limit *= 4 {
		ctx, cancel := context.WithTimeout(f.ctx, limit)
		err = call(ctx)
		cancel()
	}
	f.class(err, driver.ClassUnknown)
}

func (f *fixture) fault(fault simulator.Fault) { f.cloud.AddFault(fault) }

// calls counts the calls of each action.
func (f *fixture) calls() map[string]int {
	found := map[string]int{}
	for _, c := range f.cloud.Calls() {
		found[c.Action]++
	}
	return found
}

// kinds counts the resources that there are.
func (f *fixture) kinds() map[string]int {
	found := map[string]int{}
	for _, r := range f.cloud.Resources() {
		found[r.Kind]++
	}
	return found
}
