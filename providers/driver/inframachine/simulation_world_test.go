package inframachine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// Names in each life.
const (
	simNamespace = simulation.Namespace
	simName      = "node-1"
	simAccount   = "acct"
	simToken     = "secret"
)

// simOwner marks what belongs to the object, and foreignOwner what belongs to another owner.
var (
	simOwner     = driver.OwnerDigest(driver.OwnerName(types.NamespacedName{Namespace: simNamespace, Name: simName}))
	foreignOwner = driver.OwnerDigest(driver.OwnerName(types.NamespacedName{Namespace: simNamespace, Name: simName + "0"}))
)

type (
	simServer  = simulation.Server[*examplev1.ExampleMachine]
	simProcess = simulation.Process[*examplev1.ExampleMachine]
)

// simWorld is one life of a machine in the example cloud, with what must hold in it.
type simWorld struct {
	*simulation.World[*examplev1.ExampleMachine]
	cloud  *cloud.Cloud
	driver func(*instance.Driver) driver.Driver[*examplev1.ExampleMachine]
	// replicas is what reads may show, in a life in a cloud of tokens and weak reads; nil in others.
	replicas *simReplicas
	// The world's lock guards it.
	seen simSeen
}

// newSimWorld prepares a life.
func newSimWorld(seed uint64) *simWorld {
	w := &simWorld{
		seen:   simSeen{owned: map[string]bool{}, caused: map[string]bool{}},
		driver: func(d *instance.Driver) driver.Driver[*examplev1.ExampleMachine] { return d },
	}
	kind := simulation.Kind[*examplev1.ExampleMachine]{
		Name: "ExampleMachine", Group: examplev1.GroupVersion.Group,
		New:     func() *examplev1.ExampleMachine { return &examplev1.ExampleMachine{} },
		NewList: func() client.ObjectList { return &examplev1.ExampleMachineList{} },
	}
	w.World = simulation.NewWorld(seed, kind, simulation.Network[*examplev1.ExampleMachine]{
		Cloud: w, Name: callName, Failure: failureOf, Called: w.called, Answered: w.answered,
		Driver: func(transport http.RoundTripper) driver.Driver[*examplev1.ExampleMachine] {
			d := instance.New("http://cloud", transport, func(context.Context, driver.Scope) (string, error) { return simToken, nil })
			return w.driver(d)
		},
	})
	w.Committed = w.committed
	d := w.Random.Draw("world")
	w.Chaos = simulation.NewChaos(d)
	w.Chaos.Launch = "Create machines"
	w.Workers = simulation.One(d, 1, 1, 4)
	w.Options = inframachine.Options{Concurrency: w.Workers}
	w.cloud = newSimCloud(cloud.Delays{
		Step:   simulation.One(d, 100*time.Millisecond, time.Second, 10*time.Second),
		Start:  simulation.One(d, time.Second, 5*time.Second, 30*time.Second),
		Delete: simulation.One(d, time.Second, 3*time.Second, 40*time.Second),
	})
	return w
}

// RoundTrip makes a call in the cloud.
func (w *simWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	return w.cloud.Transport().RoundTrip(r)
}

func newSimCloud(delays cloud.Delays) *cloud.Cloud {
	c := cloud.New(cloud.Options{Delays: delays})
	c.AddAccount(simAccount, simToken)
	return c
}

// callName is the name of a call, as the cloud has it.
func callName(r *http.Request, _ []byte) string {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	verb := map[string]string{http.MethodPut: "Create", http.MethodDelete: "Delete", http.MethodGet: "Get"}[r.Method]
	kind := path[len(path)-1]
	if len(path) == 3 {
		return "List " + kind
	}
	return verb + " " + path[len(path)-2]
}

func failureOf(r *http.Request, status int) *http.Response {
	code := cloud.CodeInternal
	if status == http.StatusServiceUnavailable {
		code = cloud.CodeUnavailable
	}
	body, _ := json.Marshal(map[string]cloud.Failure{"error": {Code: code, Message: "something went wrong"}})
	return simulation.Answer(r, status, "application/json", bytes.TrimSpace(body))
}

// populate creates the objects of the life, and what another owner has in the cloud.
func (w *simWorld) populate() {
	d := w.Random.Draw("objects")
	w.createForeign("a", simName+"0")
	if d.IntN(10) == 0 {
		zone := simulation.One(d, "a", "b", "c")
		w.seen.taken = zone
		w.Log("another user has a machine of the name in zone %s", zone)
		w.createForeign(zone, simName)
	}
	time.Sleep(2 * time.Minute)
	w.seen.foreign = w.cloud.Resources(simAccount, map[string]string{instance.LabelOwner: foreignOwner})
	w.AddCluster()
	spec := examplev1.ExampleMachineSpec{
		MachineSpec: driverv1.MachineSpec{LaunchTimeoutSeconds: ptr.To(simulation.One(d, int32(180), 600, 1200))},
		Account:     simAccount, Zones: simulation.One(d, []string{"a"}, []string{"a", "b"}, []string{"a", "b", "c"}),
		MachineType: "small", Image: "node-v1", Spot: d.IntN(3) == 0,
	}
	if d.IntN(3) == 0 {
		spec.FallbackMachineTypes = []string{"large"}
	}
	w.AddMachine(&examplev1.ExampleMachine{ObjectMeta: metav1.ObjectMeta{Name: simName}, Spec: spec})
}

// createForeign makes a machine of another owner.
func (w *simWorld) createForeign(zone, name string) {
	body := fmt.Sprintf(
		`{"requestID":"foreign-%s-%s","machineType":"small","image":"node-v1","labels":{"%s":"%s","%s":"foreign","%s":"foreign"}}`,
		zone,
		name,
		instance.LabelOwner,
		foreignOwner,
		instance.LabelOwnerUID,
		instance.LabelToken,
	)
	r, _ := http.NewRequest(http.MethodPut, "http://cloud/v1/acct/zones/"+zone+"/machines/"+name, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+simToken)
	if _, err := w.cloud.Transport().RoundTrip(r); err != nil {
		w.Violate("the cloud does not work: %v", err)
	}
}
