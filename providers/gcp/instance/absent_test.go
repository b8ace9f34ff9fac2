package instance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// of is a handle that only a provider ID leads from.
func of(zone, name string, ending bool) driver.Handle {
	return driver.Handle{
		Scope:      scope,
		ProviderID: "gce://" + project + "/" + zone + "/" + name,
		OwnerUID:   "uid-one",
		Owner:      "ns/one",
		Ending:     ending,
	}
}

// TestAListThatLeavesOutAZone without a word: what there is in it is asked for one by one, and so is whatever a Machine would fail by.
func TestAListThatLeavesOutAZone(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.running(launch(zoneA, "one", 1))
	for name, c := range map[string]struct {
		leftOut []string
		handle  driver.Handle
		found   bool
		gets    int
	}{
		"left out, there":              {[]string{zoneA}, of(zoneA, "one", false), true, 1},
		"left out, there, to end":      {[]string{zoneA}, of(zoneA, "one", true), true, 1},
		"left out, not there":          {[]string{zoneA}, of(zoneA, "two", false), false, 1},
		"left out, not there, to end":  {[]string{zoneA}, of(zoneA, "two", true), false, 1},
		"listed":                       {nil, of(zoneA, "one", false), true, 0},
		"not listed":                   {nil, of(zoneA, "two", false), false, 1},
		"never listed, to end":         {nil, of(zoneA, "two", true), false, 1},
		"never listed, to end, zone B": {nil, of(zoneB, "two", true), false, 1},
		"of a zone that there is not":  {nil, of("us-central1-z", "one", true), false, 1},
	} {
		f.cloud.SetIncomplete("", c.leftOut...)
		f.cloud.ClearCalls()
		answer := f.observe(c.handle)
		if c.found {
			f.Expect(answer.Err).NotTo(HaveOccurred(), name)
			f.Expect(answer.Value).To(And(HaveField("State", driverv1.InstanceRunning), HaveField("ProviderID", c.handle.ProviderID)), name)
		} else {
			f.Expect(driver.IsNotFound(answer.Err)).To(BeTrue(), "%s: %v", name, answer.Err)
		}
		f.Expect(f.count("instances.get")).To(Equal(c.gets), name)
	}
	f.fault(simulator.Fault{Action: "instances.get", Count: 1, Error: &simulator.APIError{Code: "backendError"}})
	f.class(f.observe(of(zoneA, "two", false)).Err, driver.ClassUnknown)
}

// TestAListWithAWarningOfItsOwn lacks something unknown.
func TestAListWithAWarningOfItsOwn(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(launch(zoneA, "one", 1))
	f.cloud.SetIncomplete("LIST_OVERHEAD_QUOTA_EXCEED", zoneA)
	_, err := f.List(f.ctx, scope)
	f.class(err, driver.ClassUnknown)
	f.Expect(driver.AsIncomplete(err)).To(BeNil())
	f.class(f.observe(h).Err, driver.ClassUnknown)
	f.class(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Err, driver.ClassUnknown)
	_, err = f.ListLeftovers(f.ctx, scope)
	f.class(err, driver.ClassUnknown)
}

// TestARegionThatDoesNotAnswer has nothing of the provider's: its disks and operations are in zones.
func TestARegionThatDoesNotAnswer(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(
		launch(zoneA, "one", 1, spot, func(s *infrav1.GCPMachineSpec) { s.InstanceTerminationAction = infrav1.InstanceTerminationActionStop }),
	)
	f.disk("left", "uid-gone", "ns/gone")
	f.cloud.SetUnreachable("regions/europe-west9", "global")
	f.Expect(f.Remark(f.ctx, scope, []driver.Handle{h}, "v_f_2")).To(Equal([]error{nil}))
	left, err := f.ListLeftovers(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(left).To(HaveLen(1))
	gone := driver.Handle{OwnerUID: "uid-gone", Owner: "ns/gone", Placement: driver.Placement{ID: zoneA}}
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{gone})[0]).To(Equal(driver.Answer[[]string]{Value: []string{"disk left"}}))
	f.Expect(f.cloud.Preempt(project, zoneA, "one")).To(Succeed())
	f.settle()
	f.Expect(f.observe(h).Value).To(And(HaveField("Interrupted", true), HaveField("StateMessage", "")))
}

// TestAnInstanceThatAppearsAfterTheList and before its operation is read, which is done: it is there.
func TestAnInstanceThatAppearsAfterTheList(t *testing.T) {
	f := newFixture(t, compute.Options{})
	inner := f.cloud
	d := instance.New("http://cloud/compute/v1", direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/operations/") {
			f.settle()
		}
		inner.ServeHTTP(w, r)
	})}, f)
	f.cloud.SetDelays(compute.Delays{Pending: time.Second})
	h := f.accepted(launch(zoneA, "one", 1))
	answer := d.Observe(f.ctx, scope, []driver.Handle{h})[0]
	f.Expect(answer.Err).NotTo(HaveOccurred())
	f.Expect(answer.Value).To(And(HaveField("State", driverv1.InstanceRunning), HaveField("Token", h.Token)))
	f.Expect(f.count("zoneOperations.get")).To(Equal(1))
	f.Expect(f.count("instances.get")).To(Equal(1))
}

// TestTheNameIsTakenByAnother between the read of an instance and its deletion: the foreign one is left alone.
func TestTheNameIsTakenByAnother(t *testing.T) {
	f := newFixture(t, compute.Options{})
	protected := func(s *infrav1.GCPMachineSpec) { s.DeletionProtection = ptr.To(true) }
	h := f.running(launch(zoneA, "one", 1))
	h.Incarnation = f.observe(h).Value.Incarnation
	f.Expect(h.Incarnation).NotTo(BeEmpty())
	f.Expect(f.cloud.Vanish(project, zoneA, "one")).To(Succeed())
	f.running(launch(zoneA, "one", 2, protected))
	f.class(f.Unprotect(f.ctx, scope, h), driver.ClassNotFound)
	f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
	f.Expect(f.cloud.Instances(project)).To(ConsistOf(And(HaveField("Status", "RUNNING"), HaveField("DeletionProtection", true))))
	h.Incarnation = f.observe(h).Value.Incarnation
	f.Expect(f.Unprotect(f.ctx, scope, h)).To(Succeed())
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
}

// TestAServerThatTakesNamesAlone answers that there is no instance of the ID, while the name still leads to it.
func TestAServerThatTakesNamesAlone(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(launch(zoneA, "one", 1))
	h.Incarnation = f.observe(h).Value.Incarnation
	unknown := &simulator.APIError{Code: "notFound"}
	f.fault(simulator.Fault{Action: "instances.delete", Count: 1, Error: unknown})
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.Expect(f.cloud.Instances(project)).To(ConsistOf(HaveField("Status", "STOPPING")))
	f.Expect(f.count("instances.delete")).To(Equal(2))
}

// TestAZoneWhoseCallsHang takes the time of none of the others in the batch.
func TestAZoneWhoseCallsHang(t *testing.T) {
	f := newFixture(t, compute.Options{})
	var handles []driver.Handle
	for n := range 12 { // More than are deleted at a time.
		handles = append(handles, f.running(launch(zoneA, fmt.Sprintf("one-%d", n), 1)))
	}
	handles = append(handles, f.running(launch(zoneB, "two", 1)))
	inA := map[string]string{"zone": zoneA}
	f.fault(simulator.Fault{Action: "instances.delete", Parameters: inA, HoldBefore: true})
	deleted := make(chan []error, 1)
	go func() { deleted <- f.Delete(f.ctx, scope, handles) }()
	f.Eventually(func() []compute.Instance { return f.cloud.Instances(project) }).Should(ContainElement(
		And(HaveField("Name", "two"), HaveField("Status", "STOPPING"))))
	f.Expect(deleted).NotTo(Receive())
	f.cloud.ClearFaults()
	f.Eventually(deleted).Should(Receive(HaveEach(BeNil())))

	f.cloud.SetDelays(compute.Delays{Pending: time.Hour})
	pending := []driver.Handle{f.accepted(launch(zoneA, "three", 1)), f.accepted(launch(zoneB, "four", 1))}
	f.cloud.ClearCalls()
	f.fault(simulator.Fault{Action: "zoneOperations.get", Parameters: inA, HoldBefore: true})
	seen := make(chan []driver.Answer[driver.Instance], 1)
	go func() { seen <- f.Observe(f.ctx, scope, pending) }()
	f.Eventually(func() int { return f.count("zoneOperations.get") }).Should(Equal(2))
	f.cloud.ClearFaults()
	f.Eventually(seen).Should(Receive(HaveEach(HaveField("Value.State", driverv1.InstancePending))))
}

// TestOperationsWithoutEnd: so many pages are read and no more, and what they lack shows nothing.
func TestOperationsWithoutEnd(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := of(zoneA, "gone", false)
	h.Placement.Market, h.Token = "spot", "t"
	pages, inner := 0, f.cloud
	d := instance.New("http://cloud/compute/v1", direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/aggregated/operations") {
			if pages++; pages < 1000 {
				_, _ = w.Write([]byte(`{"nextPageToken":"more"}`))
				return
			}
		}
		inner.ServeHTTP(w, r)
	})}, f)
	f.class(d.Observe(f.ctx, scope, []driver.Handle{h})[0].Err, driver.ClassNotFound)
	f.Expect(pages).To(Equal(20))
}
