package instance_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/example/cloud"
	"millwright.dev/test/clouds/example/provider/instance"
)

// TestLife: from a launch that is accepted until nothing is left.
func TestLife(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	l := launch("a", "m1", 1)
	h := f.accepted(l)
	pending := f.observe(h)
	f.Expect(pending.Err).NotTo(HaveOccurred())
	f.Expect(pending.Value).To(And(HaveField("State", driverv1.InstancePending), HaveField("ProviderID", ""), HaveField("Token", l.Token)))
	f.Expect(h.Owns(pending.Value)).To(BeTrue())
	f.Expect(pending.Value.Addresses).To(BeEmpty())
	f.clock.Step(4 * time.Second)
	starting := f.observe(h).Value
	f.Expect(starting.State).To(Equal(driverv1.InstancePending))
	f.Expect(starting.ProviderID).To(Equal("example:///acme/a/m1"), "it is certain, although it does not run yet")
	f.settle()

	running := f.observe(h).Value
	f.Expect(running.Addresses).To(HaveLen(2))
	f.Expect(running.Addresses[0].Type).To(Equal(clusterv1.MachineInternalIP))
	running.Addresses = nil
	f.Expect(running).To(Equal(driver.Instance{
		ID:            "m1",
		ProviderID:    "example:///acme/a/m1",
		Token:         l.Token,
		Name:          "m1",
		OwnerUID:      l.OwnerUID,
		Owner:         driver.OwnerDigest("ns/m1"),
		Lineage:       "u_e_1",
		State:         driverv1.InstanceRunning,
		LaunchTime:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		FailureDomain: "a",
		InstanceType:  "small",
	}))
	h.ProviderID = running.ProviderID
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceRunning))
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceTerminating))
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}), "repeating it is harmless")
	f.settle()
	f.class(f.observe(h).Err, driver.ClassNotFound)
	f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
	f.Expect(f.cloud.Resources(account, nil)).To(HaveLen(2))
	f.Expect(f.clean(h)).To(Equal(3), "the interface, then the address, then nothing")
	f.Expect(f.cloud.Resources(account, nil)).To(BeEmpty())
}

// TestUsersLabels are on the machine, beside the mark.
func TestUsersLabels(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.running(launch("a", "m1", 1))
	f.Expect(f.cloud.Machines(account, nil)[0].Labels).To(Equal(map[string]string{
		"team": "blue", "millwright-owner-uid": "uid-m1", "millwright-owner": driver.OwnerDigest("ns/m1"), "millwright-token": "a-m1-1",
		"millwright-lineage": "u_e_1",
	}))
	f.Expect(f.Mark(handle(launch("a", "m1", 1), ""))).To(Equal(
		"labels millwright-owner-uid=uid-m1 and millwright-owner=" + driver.OwnerDigest("ns/m1")))
}

// TestCreateIsSafeToRepeat: the same call gets the same operation; another attempt of the name gets Conflict and creates nothing.
func TestCreateIsSafeToRepeat(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	h := f.accepted(launch("a", "m1", 1))
	f.Expect(f.accepted(launch("a", "m1", 1)).Operation).To(Equal(h.Operation))
	_, err := f.Create(f.ctx, launch("a", "m1", 2))
	f.class(err, driver.ClassConflict)
	changed := launch("a", "m1", 1)
	changed.UserData = []byte("other")
	_, err = f.Create(f.ctx, changed)
	f.class(err, driver.ClassConflict)
	f.Expect(f.cloud.Count(account, "team", "blue").Creates).To(Equal(1))
	f.settle()
	f.Expect(f.accepted(launch("a", "m1", 1)).Operation).To(Equal(h.Operation))
}

// TestPlaces are the zones and types of the spec, within the failure domain.
func TestPlaces(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	candidate := func(zone, machineType string, rank int, market string) driver.Candidate {
		return driver.Candidate{
			Placement: driver.Placement{ID: zone, FailureDomain: zone, InstanceType: machineType, Market: market}, Rank: rank,
		}
	}
	l := launch("", "m1", 1)
	found, err := f.Places(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found).To(Equal([]driver.Candidate{
		candidate("a", "small", 0, ""), candidate("b", "small", 0, ""), candidate("a", "large", 1, ""), candidate("b", "large", 1, ""),
	}))
	l.FailureDomain, l.Object.Spec.Spot = "b", true
	found, err = f.Places(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found).To(Equal([]driver.Candidate{candidate("b", "small", 0, "spot"), candidate("b", "large", 1, "spot")}))
	l.FailureDomain = "x"
	_, err = f.Places(f.ctx, l)
	f.class(err, driver.ClassTerminal)
	f.Expect(f.cloud.Calls()).To(BeEmpty())
}

// TestManyHandles: one call of each list for all, answers in the order of the handles, and one that leads to nothing affects no other.
func TestManyHandles(t *testing.T) {
	f := newFixture(t, cloud.Options{PageSize: 3})
	var handles []driver.Handle
	for i := range f.Traits().BatchSize {
		h := f.accepted(launch([]string{"a", "b", "c"}[i%3], fmt.Sprintf("m%d", i), 1))
		if i%5 == 1 {
			h.Name = "missing"
			h.Operation = ""
		}
		handles = append(handles, h)
	}
	f.settle()
	before := f.cloud.Calls()
	for i, answer := range f.Observe(f.ctx, scope, handles) {
		if i%5 == 1 {
			f.class(answer.Err, driver.ClassNotFound)
			continue
		}
		f.Expect(answer.Err).NotTo(HaveOccurred())
		f.Expect(answer.Value.Name).To(Equal(handles[i].Name))
		f.Expect(handles[i].Owns(answer.Value)).To(BeTrue())
	}
	f.Expect(f.cloud.Calls()["ListMachines"]-before["ListMachines"]).To(Equal(6), "16 machines, 3 a page")
	f.Expect(f.cloud.Calls()["GetMachine"]).To(BeZero())

	for i, err := range f.Delete(f.ctx, scope, handles) {
		if i%5 == 1 {
			f.class(err, driver.ClassNotFound)
			continue
		}
		f.Expect(err).NotTo(HaveOccurred())
	}
	f.settle()
	f.Expect(f.cloud.Machines(account, nil)).To(HaveLen(4), "those that no handle led to")
	for i, answer := range f.Cleanup(f.ctx, scope, handles) {
		f.Expect(answer.Err).NotTo(HaveOccurred())
		f.Expect(len(answer.Value)).To(Equal(map[bool]int{true: 3, false: 2}[i%5 == 1]), fmt.Sprint(i, answer.Value))
	}
	f.settle()
	f.Cleanup(f.ctx, scope, handles)
	f.settle()
	for i, answer := range f.Cleanup(f.ctx, scope, handles) {
		f.Expect(len(answer.Value)).To(Equal(map[bool]int{true: 3, false: 0}[i%5 == 1]), "parts that a machine uses stay")
	}
}

// TestStates of a machine and what they become.
func TestStates(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	spot := launch("a", "m1", 1)
	spot.Object.Spec.Spot = true
	h := f.running(spot)
	f.Expect(f.observe(h).Value).To(And(HaveField("Interruptible", true), HaveField("Market", "spot"), HaveField("Interrupted", false)))
	f.cloud.Stop(account, "a", "m1")
	f.Expect(f.observe(h).Value).To(And(HaveField("State", driverv1.InstanceStopped), HaveField("Interrupted", false)))
	f.cloud.Start(account, "a", "m1")
	f.cloud.Interrupt(account, "a", "m1")
	f.Expect(f.observe(h).Value).To(And(
		HaveField("State", driverv1.InstanceStopped), HaveField("Interrupted", true), HaveField("StateCode", cloud.CodeSpotReclaimed)))
	f.cloud.Vanish(account, "a", "m1")
	f.class(f.observe(h).Err, driver.ClassNotFound)
}

// TestListStatus has only the machines without power, so that a list does not change for the others.
func TestListStatus(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	on, off := f.running(launch("a", "m1", 1)), f.running(launch("b", "m2", 1))
	f.cloud.PowerOff(account, "b", "m2")
	statuses, err := f.ListStatus(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(statuses).NotTo(HaveKey(on.ProviderID))
	f.Expect(f.observe(off).Value.State).To(Equal(driverv1.InstanceRunning), "the other reads do not show it")
	with := f.observe(off).Value.With(statuses[off.ProviderID])
	f.Expect(with.State).To(Equal(driverv1.InstanceStopped))
	f.Expect(with.StateCode).To(Equal(cloud.CodePoweredOff))

	f.cloud.Interrupt(account, "a", "m1")
	statuses, err = f.ListStatus(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	with = f.observe(on).Value.With(statuses[on.ProviderID])
	f.Expect(with).To(And(HaveField("Interrupted", true), HaveField("StateCode", cloud.CodeSpotReclaimed)))
}

// TestListLeftovers has the parts that nothing uses, with their marks, and no others.
func TestListLeftovers(t *testing.T) {
	f := newFixture(t, cloud.Options{PageSize: 1})
	l := launch("a", "m1", 1)
	h := f.running(l)
	f.running(launch("b", "m2", 1))
	found, err := f.ListLeftovers(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found).To(BeEmpty())
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.settle()
	found, err = f.ListLeftovers(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(found).
		To(ConsistOf(And(HaveField("Kind", "interfaces"), HaveField("OwnerUID", l.OwnerUID), HaveField("Owner", driver.OwnerDigest(l.Owner)),
			HaveField("Lineage", l.Lineage), HaveField("Created", Not(BeZero())))), "the address is the interface's")
}

// TestRemark writes the lineage of what has the mark, machine and parts, and nothing else of them.
func TestRemark(t *testing.T) {
	f := newFixture(t, cloud.Options{PageSize: 1})
	l := launch("a", "m1", 1)
	h, other := f.running(l), f.running(launch("b", "m2", 1))
	thief := other
	thief.Owner = "ns/thief"
	labels := func(name string) map[string]string {
		return f.cloud.Machines(account, map[string]string{instance.LabelOwnerUID: "uid-" + name})[0].Labels
	}
	before, others := labels("m1"), labels("m2")
	f.Expect(f.Remark(f.ctx, scope, []driver.Handle{h, thief}, "u_f_2")).To(Equal([]error{nil, nil}))
	f.Expect(labels("m2")).To(Equal(others), "it does not have the whole mark")
	before[instance.LabelLineage] = "u_f_2"
	f.Expect(labels("m1")).To(Equal(before))
	f.Expect(f.observe(h).Value.Lineage).To(Equal("u_f_2"))
	f.Expect(f.cloud.Resources(account, map[string]string{instance.LabelLineage: "u_f_2"})).To(HaveLen(4), "its parts as well")
	f.Expect(f.Remark(f.ctx, scope, []driver.Handle{h}, "u_f_2")).To(Equal([]error{nil}), "again")

	// The machine is last, so that what fails is tried again.
	f.cloud.AddFault(
		cloud.Fault{Call: "LabelDisk", Count: 1, Status: http.StatusForbidden, Failure: cloud.Failure{Code: cloud.CodePermissionDenied}},
	)
	failures := f.Remark(f.ctx, scope, []driver.Handle{h, other}, "u_f_3")
	f.class(failures[0], driver.ClassAuth)
	f.Expect(failures[1]).NotTo(HaveOccurred())
	f.Expect(f.observe(h).Value.Lineage).To(Equal("u_f_2"))
	f.Expect(f.observe(other).Value.Lineage).To(Equal("u_f_3"))
	f.Expect(f.cloud.Calls()).NotTo(HaveKey("Unknown"))
}
