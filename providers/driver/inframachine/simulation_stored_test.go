package inframachine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
	"millwright.dev/providers/driver/inframachine"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// simStore keeps user data beside the machines, as Secrets Manager does beside EC2: one for each mark, at /v1/<account>/userdata/<mark>.
type simStore struct {
	w *simWorld
	// joins is true if the Machine gets a Node a while after it runs.
	joins bool

	mu   sync.Mutex
	kept map[string]string
	// lost is true once a user has removed what was kept: for ten minutes it is not looked for again.
	lost bool
	// refuse is the status with which it answers; 0 for none.
	refuse int
}

// simCaller is what a process calls it with.
type simCaller struct {
	*simStore
	transport http.RoundTripper
}

// simNamesStoring and simTokensStoring are the drivers of both clouds with it.
type (
	simNamesStoring struct {
		*instance.Driver
		simCaller
	}
	simTokensStoring struct {
		*simTokenDriver
		simCaller
	}
)

var (
	_ driver.UserDataStore[*examplev1.ExampleMachine] = simNamesStoring{}
	_ driver.UserDataStore[*examplev1.ExampleMachine] = simTokensStoring{}
)

// useStore makes of the world one whose machines have their user data stored.
func (w *simWorld) useStore() {
	w.stored = &simStore{w: w, joins: true, kept: map[string]string{}}
}

// over returns the driver with the store of the world, if it has one.
func (w *simWorld) over(d driver.Driver[*examplev1.ExampleMachine], transport http.RoundTripper) driver.Driver[*examplev1.ExampleMachine] {
	if w.stored == nil {
		return d
	}
	caller := simCaller{w.stored, transport}
	if tokens, ok := d.(*simTokenDriver); ok {
		return simTokensStoring{tokens, caller}
	}
	return simNamesStoring{d.(*instance.Driver), caller}
}

func (d simNamesStoring) Traits() driver.Traits  { return storing(d.Driver.Traits()) }
func (d simTokensStoring) Traits() driver.Traits { return storing(d.simTokenDriver.Traits()) }

func storing(t driver.Traits) driver.Traits {
	t.StoredUserDataLimit = 64 * 1024
	return t
}

func (d simNamesStoring) Create(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) (driver.Accepted, error) {
	d.launches(l)
	return d.Driver.Create(ctx, l)
}

func (d simTokensStoring) Create(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) (driver.Accepted, error) {
	d.launches(l)
	return d.simTokenDriver.Create(ctx, l)
}

// launches checks that what a launch needs is there, unless it is on its way out with its object.
func (s *simStore) launches(l driver.Launch[*examplev1.ExampleMachine]) {
	kept := s.get(driver.OwnerDigest(l.Owner))
	obj := s.w.Server().Machine(simName)
	if obj == nil || !obj.DeletionTimestamp.IsZero() || obj.Status.HasFailed() || s.w.caused("forged") || s.w.caused("unheld") {
		return
	}
	if kept != string(l.UserData) && !s.wasLost() {
		s.w.Violate("a machine is launched whose user data is not stored: %d bytes are, of %d", len(kept), len(l.UserData))
	}
}

func (s *simStore) get(mark string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[mark]
}

// left reports that there is some of the object; empty if not.
func (s *simStore) left() string {
	if s.get(simOwner) == "" {
		return ""
	}
	return "user data is stored"
}

func (c simCaller) StoresUserData(*examplev1.ExampleMachine) bool { return true }

// StoreUserData checks that the object is held, and has a record, before anything is kept for it.
func (c simCaller) StoreUserData(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) error {
	obj := c.w.Server().Machine(simName)
	if obj != nil && !c.w.caused("unheld") && !c.w.caused("forged") {
		_, recorded := obj.Annotations[inframachine.LaunchAnnotation]
		if !recorded || !controllerutil.ContainsFinalizer(obj, inframachine.Finalizer) {
			c.w.Violate("user data is stored for an object that is not held")
		}
	}
	return c.call(ctx, http.MethodPut, driver.OwnerDigest(l.Owner), l.UserData)
}

func (c simCaller) RemoveUserData(ctx context.Context, _ driver.Scope, h driver.Handle) error {
	mark := driver.OwnerDigest(h.Owner)
	obj := c.w.Server().Machine(simName)
	machine, _ := c.w.Server().Get(simulation.MachineID(simName)).(*clusterv1.Machine)
	needed := obj != nil && obj.DeletionTimestamp.IsZero() && !obj.Status.HasFailed() && machine != nil && !machine.Status.NodeRef.IsDefined()
	if needed && mark == simOwner && !c.w.caused("forged") {
		c.w.Violate("user data is removed that the machine may need yet")
	}
	return c.call(ctx, http.MethodDelete, mark, nil)
}

func (c simCaller) call(ctx context.Context, method, mark string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://cloud/v1/"+simAccount+"/userdata/"+mark, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := c.transport.RoundTrip(r)
	if err != nil {
		return driver.NewUnknownError(method, "", err)
	}
	defer answer.Body.Close()
	why := errors.New("the store does not want to")
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusForbidden:
		return driver.NewAuthError(method, "Denied", why)
	case http.StatusConflict:
		return driver.NewConflictError(method, "Taken", why)
	}
	return driver.NewUnknownError(method, fmt.Sprint(answer.StatusCode), why)
}

// RoundTrip is a call of the store itself. What arrives after its object is on its way out is left for the scan for orphans to find.
func (s *simStore) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	mark := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	obj := s.w.Server().Machine(simName)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.refuse != 0:
		return simulation.Answer(r, s.refuse, "application/json", nil), nil
	case r.Method == http.MethodDelete:
		delete(s.kept, mark)
	case obj != nil && obj.DeletionTimestamp.IsZero():
		s.kept[mark] = string(body)
	}
	return simulation.Answer(r, http.StatusOK, "application/json", nil), nil
}

func (s *simStore) wasLost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// lose simulates a user who removes what is kept.
func (s *simStore) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
	clear(s.kept)
}

func (s *simStore) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = status
}

// join gives the Machine a Node, which has read its user data then.
func (w *simWorld) join() {
	w.Server().Change(simulation.MachineID(simName), func(m client.Object) {
		m.(*clusterv1.Machine).Status.NodeRef = clusterv1.MachineNodeReference{Name: simName}
	})
}

// joins has it do so a while after the machine runs, in lives in which that is so.
func (w *simWorld) joins(obj *examplev1.ExampleMachine) {
	if w.stored == nil || !w.stored.joins || !meta.IsStatusConditionTrue(obj.Status.Conditions, driverv1.ReadyCondition) {
		return
	}
	w.After(w.Random.Between("join", time.Second, 3*time.Minute), func() {
		if m, ok := w.Server().Get(simulation.MachineID(simName)).(*clusterv1.Machine); ok && !m.Status.NodeRef.IsDefined() {
			w.join()
		}
	})
}
