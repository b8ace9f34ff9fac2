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
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/drivertest/simulation"
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
	if kept != string(l.UserData) {
		s.w.Violate("a machine is launched whose user data is not stored: %d bytes are, of %d", len(kept), len(l.UserData))
	}
}

func (s *simStore) get(mark string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[mark]
}

// left says that there is some of the object; empty if not.
func (s *simStore) left() string {
	if s.get(simOwner) == "" {
		return ""
	}
	return "user data is stored"
}

func (c simCaller) StoresUserData(*examplev1.ExampleMachine) bool { return true }

func (c simCaller) StoreUserData(ctx context.Context, l driver.Launch[*examplev1.ExampleMachine]) error {
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

// withStore simulates a scripted life in both clouds, with user data that is stored.
func withStore(t *testing.T, life func(*WithT, *simWorld)) {
	t.Helper()
	inBothClouds(t, func(g *WithT, w *simWorld) {
		w.useStore()
		w.stored.joins = false
		life(g, w)
	})
}

// TestUserDataIsStoredAsLongAsItIsNeeded: from before the launch until there is a Node, or the end of the object.
func TestUserDataIsStoredAsLongAsItIsNeeded(t *testing.T) {
	for name, join := range map[string]bool{"until there is a Node": true, "until the end": false} {
		t.Run(name, func(t *testing.T) {
			withStore(t, func(g *WithT, w *simWorld) {
				calls := w.callsSince()
				w.Start(w.Server())
				w.becomesReady(g, 5*time.Minute)
				g.Expect(calls("cloud Create userdata")).To(Equal(1))
				g.Expect(w.stored.get(simOwner)).NotTo(BeEmpty())
				if join {
					w.join()
				}
				time.Sleep(20 * time.Minute)
				g.Expect(w.stored.get(simOwner) == "").To(Equal(join))
				g.Expect(calls("cloud Delete userdata")).To(Equal(map[bool]int{true: 1}[join]), "once, and recorded")
				g.Expect(w.reason()).To(Equal(driverv1.InstanceRunningReason))
				w.remove()
				g.Expect(calls("cloud Create userdata")).To(Equal(1))
				g.Expect(w.stored.get(simOwner)).To(BeEmpty())
			})
		})
	}
}

// TestAStoreThatRefuses: before the launch, at the removal, at the end. What runs goes on, the object says why it waits, calls are few, and
// nobody has to help.
func TestAStoreThatRefuses(t *testing.T) {
	for status, reason := range map[int]string{
		http.StatusForbidden: driverv1.UnauthorizedReason, http.StatusConflict: driverv1.ForeignInstanceReason, http.StatusBadGateway: driverv1.CloudErrorReason,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			withStore(t, func(g *WithT, w *simWorld) {
				calls := w.callsSince()
				w.stored.answer(status)
				w.Start(w.Server())
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(And(
					HavePrefix("False "+reason+": Nothing has been launched: "), ContainSubstring("the store does not want to")))
				g.Expect(calls("cloud Create userdata")).To(BeNumerically("~", 12, 10))
				g.Expect(calls("cloud Create machines")).To(BeZero())
				w.stored.answer(0)
				w.becomesReady(g, 15*time.Minute)

				w.stored.answer(status)
				w.join()
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(And(
					HavePrefix("True "+driverv1.InstanceRunningReason+": "), ContainSubstring("The stored user data cannot be removed: ")))
				g.Expect(calls("cloud Delete userdata")).To(BeNumerically("~", 12, 10))
				w.Server().Delete(simulation.MachineID(simName))
				time.Sleep(30 * time.Minute)
				g.Expect(w.message(driverv1.ReadyCondition)).To(HavePrefix("False " + reason + ": The stored user data cannot be removed: "))
				g.Expect(w.cloud.Resources(simAccount, mark())).To(BeEmpty())
				w.stored.answer(0)
				w.await("the object is gone", w.gone)
				g.Expect(w.stored.get(simOwner)).To(BeEmpty())
			})
		})
	}
}

// TestUserDataThatChangesBeforeTheLaunch: the launch has what is stored, whatever the bootstrap provider writes meanwhile; and the data of
// a machine that has failed is removed.
func TestUserDataThatChangesBeforeTheLaunch(t *testing.T) {
	withStore(t, func(g *WithT, w *simWorld) {
		w.cloud.Exhaust()
		calls := w.callsSince()
		w.Start(w.Server())
		time.Sleep(time.Minute)
		g.Expect(w.reason()).To(Equal(driverv1.InsufficientCapacityReason))
		before := w.stored.get(simOwner)
		w.Server().Change(simulation.SecretID, func(s client.Object) { s.(*corev1.Secret).Data["value"] = []byte("#cloud-config\n# renewed\n") })
		time.Sleep(30 * time.Minute)
		g.Expect(w.stored.get(simOwner)).NotTo(Equal(before))
		g.Expect(calls("cloud Create userdata")).To(BeNumerically("<=", 5), "again after ten minutes each")
	})
}
