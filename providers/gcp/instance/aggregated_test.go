package instance_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// TestAZoneThatDoesNotAnswer: nothing is concluded about it, and the others are complete.
func TestAZoneThatDoesNotAnswer(t *testing.T) {
	f := newFixture(t, compute.Options{})
	one, two := f.running(launch(zoneA, "one", 1)), f.running(launch(zoneB, "two", 1))
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{f.running(launch(zoneA, "gone", 1))})).To(HaveEach(Succeed()))
	f.settle()
	gone := handle(launch(zoneA, "gone", 1), "")
	gone.ProviderID = "gce://" + project + "/" + zoneA + "/gone"
	f.disk("left", "uid-gone", "ns/gone")
	f.cloud.SetUnreachable(zoneB)

	found, err := f.List(f.ctx, scope)
	f.Expect(driver.AsIncomplete(err)).To(HaveField("Missing", []string{zoneB}))
	f.class(err, driver.ClassUnknown)
	f.Expect(err.Error()).To(ContainSubstring(zoneB))
	f.Expect(found).To(ConsistOf(HaveField("ProviderID", one.ProviderID)))
	left, err := f.ListLeftovers(f.ctx, scope)
	f.Expect(driver.AsIncomplete(err)).NotTo(BeNil())
	f.Expect(left).To(ConsistOf(HaveField("ID", "left")))

	nowhere := driver.Handle{OwnerUID: "uid-gone", Owner: "ns/gone"}
	answers := f.Observe(f.ctx, scope, []driver.Handle{one, two, gone})
	f.Expect(answers[0].Value.State).To(Equal(driverv1.InstanceRunning))
	f.class(answers[1].Err, driver.ClassUnknown)
	f.class(answers[2].Err, driver.ClassNotFound)
	cleaned := f.Cleanup(f.ctx, scope, []driver.Handle{gone, two, nowhere})
	f.Expect(cleaned[0]).To(Equal(driver.Answer[[]string]{Value: []string{"disk left"}}))
	f.class(cleaned[1].Err, driver.ClassUnknown)
	f.Expect(cleaned[2].Err).NotTo(HaveOccurred(), "an attempt without a place has left nothing there that is not cleaned up after yet")
	errs := f.Remark(f.ctx, scope, []driver.Handle{one, two}, "v_f_2")
	f.Expect(errs[0]).NotTo(HaveOccurred())
	f.class(errs[1], driver.ClassUnknown)

	f.cloud.SetUnreachable()
	f.Expect(f.List(f.ctx, scope)).To(HaveLen(2))
}

// TestListsThatAreIncomplete for another reason, or in a way that is not understood, conclude nothing.
func TestListsThatAreIncomplete(t *testing.T) {
	f := newFixture(t, compute.Options{})
	for body, expected := range map[string]string{
		`{"items":{"zones/a":{"warning":{"code":"LIST_OVERHEAD_QUOTA_EXCEED"}}}}`: "LIST_OVERHEAD_QUOTA_EXCEED: the list is incomplete: zones/a",
		`{"items":{},"unreachables":["regions/us-central1"]}`:                     "the list is incomplete: regions/us-central1",
		`{"items":{"global":{"warning":{"code":"UNREACHABLE"}}}}`:                 "the list is incomplete: global",
		`{"items":{},"warning":{"code":"LIST_OVERHEAD_QUOTA_EXCEED"}}`:            "LIST_OVERHEAD_QUOTA_EXCEED: the list is incomplete",
		`{"items":{},"warning":{"code":"UNREACHABLE"}}`:                           "UNREACHABLE: the list is incomplete",
		`<html>proxy</html>`: "the answer is not that of Compute Engine",
	} {
		_, err := answering(http.StatusOK, body).List(f.ctx, scope)
		f.class(err, driver.ClassUnknown)
		f.Expect(driver.AsIncomplete(err)).To(BeNil(), body)
		f.Expect(err.Error()).To(ContainSubstring(expected))
	}
	for _, silent := range []string{
		`{"items":{},"unreachables":["zones/us-central1-b"]}`, `{"items":{},"unreachables":["projects/p/zones/us-central1-b/instances"]}`,
		`{"items":{},"warning":{"code":"PARTIAL_SUCCESS"},"unreachables":["zones/us-central1-b"]}`,
		`{"items":{"zones/us-central1-b":{"warning":{"code":"UNREACHABLE"}}},"unreachables":["https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-b"]}`,
	} {
		_, err := answering(http.StatusOK, silent).List(f.ctx, scope)
		f.Expect(driver.AsIncomplete(err)).To(HaveField("Missing", []string{zoneB}), silent)
	}
	_, err := answering(
		http.StatusOK,
		`{"warning":{"code":"NO_RESULTS_ON_PAGE"},"items":{"zones/a":{"warning":{"code":"NO_RESULTS_ON_PAGE"}}}}`,
	).List(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
}

// TestAProjectThatIsNotFound, or an address that is not that of the API, does not show that its instances and disks are gone.
func TestAProjectThatIsNotFound(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(launch(zoneA, "one", 1))
	for range 2 {
		f.fault(simulator.Fault{Action: "instances.aggregatedList", Count: 2, Error: &simulator.APIError{Code: "notFound"}})
		f.fault(simulator.Fault{Action: "disks.aggregatedList", Count: 2, Error: &simulator.APIError{Code: "notFound"}})
	}
	_, err := f.List(f.ctx, scope)
	f.class(err, driver.ClassUnresolved)
	f.class(f.observe(h).Err, driver.ClassUnresolved)
	f.class(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Err, driver.ClassUnresolved)
	_, err = f.ListLeftovers(f.ctx, scope)
	f.class(err, driver.ClassUnresolved)
}

// TestAnEmptyPageOfOperations is not the end of the list: a page of a filtered list may have none and a token of the next one.
func TestAnEmptyPageOfOperations(t *testing.T) {
	f := newFixture(t, compute.Options{})
	l := launch(zoneA, "one", 1)
	inner := f.cloud
	d := instance.New("http://cloud/compute/v1", direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if strings.HasSuffix(r.URL.Path, "/operations") && !strings.Contains(r.URL.Path, "aggregated") {
			if query.Get("pageToken") == "" {
				_, _ = w.Write([]byte(`{"nextPageToken":"more"}`))
				return
			}
			query.Del("pageToken")
			r.URL.RawQuery = query.Encode()
		}
		inner.ServeHTTP(w, r)
	})}, f)
	f.cloud.SetDelays(compute.Delays{Pending: time.Hour})
	f.accepted(l)
	f.Expect(d.Observe(f.ctx, scope, []driver.Handle{handle(l, "")})[0].Value.State).To(Equal(driverv1.InstancePending))
}

// TestAStoppedSpotInstanceWhoseOperationsCannotBeRead: whether Compute Engine has stopped it is not known, and that is reported; all else
// is known.
func TestAStoppedSpotInstanceWhoseOperationsCannotBeRead(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(
		launch(zoneA, "spot", 1, spot, func(s *infrav1.GCPMachineSpec) { s.InstanceTerminationAction = infrav1.InstanceTerminationActionStop }),
	)
	f.running(launch(zoneA, "other", 1))
	f.Expect(f.cloud.Preempt(project, zoneA, "spot")).To(Succeed())
	f.settle()
	f.fault(simulator.Fault{Action: "globalOperations.aggregatedList", Count: 2, Error: &simulator.APIError{Code: "forbidden"}})
	unread := And(HaveField("State", driverv1.InstanceStopped), HaveField("Interrupted", false),
		HaveField("StateMessage", ContainSubstring("cannot be read: globalOperations.aggregatedList: forbidden")))
	found, err := f.List(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found).To(ConsistOf(unread, And(HaveField("Name", "other"), HaveField("State", driverv1.InstanceRunning))))
	answer := f.observe(h)
	f.Expect(answer.Err).NotTo(HaveOccurred(), "it can be ended")
	f.Expect(answer.Value).To(unread)
	f.Expect(f.observe(h).Value).To(And(HaveField("Interrupted", true), HaveField("StateMessage", "")))
}

func spot(s *infrav1.GCPMachineSpec) { s.ProvisioningModel = infrav1.ProvisioningModelSpot }

// TestCAPG173AnInstanceThatIsDeletedWhenItIsTakenBack (CAPG #173): it is not there any more, and the operations show why.
func TestCAPG173AnInstanceThatIsDeletedWhenItIsTakenBack(t *testing.T) {
	f := newFixture(t, compute.Options{})
	first := f.running(launch(zoneA, "spot", 1, spot))
	f.Expect(f.cloud.Preempt(project, zoneA, "spot")).To(Succeed())
	f.settle()
	second := f.running(launch(zoneA, "spot", 2, spot))
	f.Expect(f.cloud.Vanish(project, zoneA, "spot")).To(Succeed())
	first.Placement.Market, second.Placement.Market = "spot", "spot"
	taken := f.observe(first).Value
	f.Expect(taken).
		To(And(HaveField("State", driverv1.InstanceTerminated), HaveField("Interrupted", true), HaveField("ProviderID", first.ProviderID),
			HaveField("StateMessage", "Instance was preempted.")))
	f.Expect(first.Owns(taken)).To(BeTrue())
	f.class(f.observe(second).Err, driver.ClassNotFound)

	forged := first
	forged.Token = "of-nobody"
	f.class(f.observe(forged).Err, driver.ClassNotFound)
	standard := first
	standard.Placement.Market = ""
	before := f.count("globalOperations.aggregatedList")
	f.class(f.observe(standard).Err, driver.ClassNotFound)
	f.Expect(f.count("globalOperations.aggregatedList")).To(Equal(before), "nothing could have reclaimed it")
	ending := first
	ending.Ending = true
	f.class(f.observe(ending).Err, driver.ClassNotFound)
	f.Expect(f.count("globalOperations.aggregatedList")).To(Equal(before), "it is not read why a deleted one is gone")
	f.fault(simulator.Fault{Action: "globalOperations.aggregatedList", Count: 1, Error: &simulator.APIError{Code: "forbidden"}})
	f.class(f.observe(first).Err, driver.ClassNotFound)
}

// TestWhoHasStoppedASpotInstance is asked until it is known, and then no more: neither of one that Compute Engine has taken back nor of one
// that a person has stopped.
func TestWhoHasStoppedASpotInstance(t *testing.T) {
	f := newFixture(t, compute.Options{})
	stay := func(s *infrav1.GCPMachineSpec) { s.InstanceTerminationAction = infrav1.InstanceTerminationActionStop }
	f.running(launch(zoneA, "taken", 1, spot, stay))
	f.running(launch(zoneA, "stopped", 1, spot, stay))
	lists := func(n int) (asked int) {
		before := f.count("globalOperations.aggregatedList")
		for range n {
			found, err := f.List(f.ctx, scope)
			f.Expect(err).NotTo(HaveOccurred())
			for _, i := range found {
				f.Expect(i.Interrupted).To(Equal(i.Name == "taken" && i.State == driverv1.InstanceStopped), i.Name)
			}
		}
		return f.count("globalOperations.aggregatedList") - before
	}
	f.Expect(lists(2)).To(BeZero())
	f.Expect(f.cloud.Preempt(project, zoneA, "taken")).To(Succeed())
	f.settle()
	f.Expect(lists(10)).To(Equal(1))
	f.Expect(f.cloud.SetStatus(project, zoneA, "stopped", "TERMINATED")).To(Succeed())
	f.Expect(lists(10)).To(Equal(3), "an operation may be listed late")
	f.clock.Step(time.Minute)
	f.Expect(f.cloud.SetStatus(project, zoneA, "stopped", "RUNNING")).To(Succeed())
	f.Expect(f.cloud.SetStatus(project, zoneA, "stopped", "TERMINATED")).To(Succeed())
	f.Expect(lists(10)).To(Equal(3), "who has stopped it this time is another question")
}
