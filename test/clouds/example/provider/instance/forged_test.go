package instance_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	apitypes "k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/example/cloud"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// unmarked creates a machine without an owner.
func (f *fixture) unmarked(name string) {
	body, err := json.Marshal(cloud.CreateMachine{MachineType: "small", Image: "node-v1"})
	f.Expect(err).NotTo(HaveOccurred())
	r, err := http.NewRequestWithContext(f.ctx, http.MethodPut, "http://cloud/v1/"+account+"/zones/a/machines/"+name, bytes.NewReader(body))
	f.Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := f.cloud.Transport().RoundTrip(r)
	f.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	f.Expect(answer.StatusCode).To(Equal(http.StatusAccepted))
	f.settle()
}

// TestForgedHandlesLeadToNothing: users who may write the object may write anything into it.
func TestForgedHandlesLeadToNothing(t *testing.T) {
	for name, forge := range map[string]func(h *driver.Handle){
		"zone":                     func(h *driver.Handle) { h.ProviderID = "example:///acme/b/victim" },
		"account":                  func(h *driver.Handle) { h.ProviderID = "example:///other/a/victim" },
		"scheme":                   func(h *driver.Handle) { h.ProviderID = "aws:///acme/a/victim" },
		"no zone":                  func(h *driver.Handle) { h.ProviderID = "example:///acme/victim" },
		"one part more":            func(h *driver.Handle) { h.ProviderID = "example:///acme/a/victim/power" },
		"dots in the provider ID":  func(h *driver.Handle) { h.ProviderID = "example:///acme/a/../victim" },
		"escape":                   func(h *driver.Handle) { h.ProviderID = "example:///acme/a/victim%2f" },
		"query in the provider ID": func(h *driver.Handle) { h.ProviderID = "example:///acme/a/victim?x" },
		"line":                     func(h *driver.Handle) { h.ProviderID = "example:///acme/a/victim\n" },
		"dots in the name":         func(h *driver.Handle) { h.Name = "../machines/victim" },
		"slash in the zone":        func(h *driver.Handle) { h.Name, h.Placement.ID = "victim", "b/../a" },
		"dots in the zone":         func(h *driver.Handle) { h.Placement.ID = ".." },
		"query in the name":        func(h *driver.Handle) { h.Name = "victim?label=" },
		"no name":                  func(h *driver.Handle) { h.Name = "" },
		"dash":                     func(h *driver.Handle) { h.Name = "-" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, cloud.Options{})
			f.cloud.AddAccount("other", "token-of-other")
			victim := f.running(launch("a", "victim", 1))
			h := handle(launch("a", "thief", 1), "")
			forge(&h)
			f.class(f.observe(h).Err, driver.ClassNotFound)
			f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
			answer := f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]
			f.Expect(answer.Err).NotTo(HaveOccurred())
			f.Expect(answer.Value).To(BeEmpty())
			f.settle()
			f.Expect(f.cloud.Resources(account, nil)).To(HaveLen(4))
			f.Expect(f.observe(victim).Err).NotTo(HaveOccurred())
			f.Expect(f.cloud.Calls()).NotTo(HaveKey("Unknown"))
			both := f.Observe(f.ctx, scope, []driver.Handle{h, victim})
			f.class(both[0].Err, driver.ClassNotFound)
			f.Expect(both[1].Err).NotTo(HaveOccurred(), "the other answer is not affected")
		})
	}
}

// TestNothingIsListedForNothing: an empty filter would be a list of everything. Operations are read only while they matter.
func TestNothingIsListedForNothing(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	known := f.running(launch("a", "m1", 1))
	before := f.cloud.Calls()
	f.class(f.observe(driver.Handle{Scope: scope, ProviderID: "example:///other/a/m1", Operation: known.Operation}).Err, driver.ClassNotFound)
	f.Expect(f.cloud.Calls()).To(Equal(before))
	f.Expect(f.observe(known).Err).NotTo(HaveOccurred())
	known.Operation = ""
	known.ProviderID = ""
	f.Expect(f.observe(known).Err).NotTo(HaveOccurred())
	f.Expect(f.cloud.Calls()["ListOperations"]).To(Equal(before["ListOperations"]))
}

// TestNamesThatArePathsAreNotCalled, if they get as far as a call.
func TestNamesThatArePathsAreNotCalled(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	for _, change := range []func(*driver.Launch[*examplev1.ExampleMachine]){
		func(l *driver.Launch[*examplev1.ExampleMachine]) { l.Name = "../m1" },
		func(l *driver.Launch[*examplev1.ExampleMachine]) { l.Placement.ID = ".." },
		func(l *driver.Launch[*examplev1.ExampleMachine]) { l.Scope.Location = "acme/zones/b" },
	} {
		l := launch("a", "m1", 1)
		change(&l)
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassTerminal)
	}
	f.Expect(f.cloud.Calls()).To(BeEmpty())
}

// TestReadsAndDeletionsHaveNoBody: some proxies refuse them otherwise.
func TestReadsAndDeletionsHaveNoBody(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	h := f.running(launch("a", "m1", 1))
	f.cloud.AddFault(cloud.Fault{Match: func(c cloud.Call) bool { return len(c.Body) > 0 }, Break: cloud.LoseRequest})
	f.Expect(f.observe(h).Err).NotTo(HaveOccurred())
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
}

// TestANameOfAnotherObject leads to an instance without the mark of the handle: the kit leaves it alone.
func TestANameOfAnotherObject(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	victim := f.running(launch("a", "victim", 1))
	for _, h := range []driver.Handle{
		{Scope: scope, ProviderID: victim.ProviderID, OwnerUID: "uid-thief", Owner: "ns/thief"},
		{Scope: scope, Name: "victim", Placement: victim.Placement, OwnerUID: "uid-thief", Owner: "ns/thief"},
		{Scope: scope, Name: "victim", Placement: victim.Placement, OwnerUID: victim.OwnerUID, Owner: "ns/thief"},
	} {
		found := f.observe(h)
		f.Expect(found.Err).NotTo(HaveOccurred())
		f.Expect(h.Owns(found.Value)).To(BeFalse())
		f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Value).To(BeEmpty())
	}
}

// TestForgedOperations: one that is about something else, or of another kind, does not count.
func TestForgedOperations(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.cloud.Exhaust("a")
	failed := f.accepted(launch("a", "victim", 1))
	f.settle()
	f.cloud.Restore()
	mine := f.accepted(launch("a", "m1", 1))
	for _, operation := range []string{failed.Operation, "../machines", "op-9&status=failed", "op 1", "none"} {
		h := mine
		h.Operation = operation
		f.Expect(f.observe(h)).
			To(And(HaveField("Err", BeNil()), HaveField("Value.Token", "a-m1-1"), HaveField("Value.Refused", BeEmpty())), operation)
		h.Name = "m2"
		f.class(f.observe(h).Err, driver.ClassNotFound)
		h.Name, h.Placement.ID = "m1", "b"
		f.class(f.observe(h).Err, driver.ClassNotFound)
	}
	f.Expect(f.cloud.Calls()).NotTo(HaveKey("Unknown"))
}

// TestCleanupDeletesOnlyWhatIsTheOwners: both parts of the mark count, and what is in use stays.
func TestCleanupDeletesOnlyWhatIsTheOwners(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	victim := f.running(launch("a", "victim", 1))
	f.cloud.Vanish(account, "a", "victim")
	f.running(launch("a", "used", 1))
	f.unmarked("unmarked")
	f.cloud.Vanish(account, "a", "unmarked")
	before := f.cloud.Resources(account, nil)
	for _, owner := range []struct {
		uid  apitypes.UID
		name string
	}{{victim.OwnerUID, "ns/thief"}, {"uid-thief", victim.Owner}, {"", victim.Owner}, {victim.OwnerUID, ""}, {"", ""},
		{"uid-victim=x", victim.Owner}} {
		h := victim
		h.OwnerUID, h.Owner = owner.uid, owner.name
		answer := f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]
		f.Expect(answer.Err).NotTo(HaveOccurred())
		f.Expect(answer.Value).To(BeEmpty())
	}
	f.settle()
	f.Expect(f.cloud.Resources(account, nil)).To(Equal(before))
	used := f.Cleanup(f.ctx, scope, []driver.Handle{handle(launch("a", "used", 1), "")})[0]
	f.Expect(used.Err).NotTo(HaveOccurred())
	f.Expect(used.Value).To(HaveLen(3))
	f.settle()
	f.Expect(f.cloud.Resources(account, nil)).To(Equal(before))
	f.clean(victim)
	f.Expect(f.cloud.Resources(account, nil)).To(HaveLen(len(before) - 2))
}

// TestCleanupReportsWhatItCannotDelete: the error is of the handle whose part it is.
func TestCleanupReportsWhatItCannotDelete(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	var handles []driver.Handle
	for _, name := range []string{"m1", "m2"} {
		handles = append(handles, f.running(launch("a", name, 1)))
		f.cloud.Vanish(account, "a", name)
	}
	f.cloud.AddFault(
		cloud.Fault{Call: "DeleteInterface", Count: 1, Status: http.StatusForbidden, Failure: cloud.Failure{Code: cloud.CodePermissionDenied}},
	)
	answers := f.Cleanup(f.ctx, scope, handles)
	f.class(answers[0].Err, driver.ClassAuth)
	f.Expect(answers[1].Err).NotTo(HaveOccurred())
	before := f.cloud.Calls()["DeleteInterface"]
	f.Cleanup(f.ctx, scope, handles)
	f.Cleanup(f.ctx, scope, handles)
	f.Expect(f.cloud.Calls()["DeleteInterface"]-before).To(Equal(1), "of the first; that of the second is being deleted, and then both are")
	f.settle()
	f.cloud.AddFault(
		cloud.Fault{Call: "DeleteAddress", Count: 2, Status: http.StatusNotFound, Failure: cloud.Failure{Code: cloud.CodeNotFound}},
	)
	for _, answer := range f.Cleanup(f.ctx, scope, handles) {
		f.Expect(answer.Err).NotTo(HaveOccurred(), "what is gone meanwhile is no error")
	}
	f.clean(handles[0])
	f.clean(handles[1])
	f.Expect(f.cloud.Resources(account, nil)).To(BeEmpty())
}

// TestProtectedMachines are of class Terminal, and the others of the call are deleted.
func TestProtectedMachines(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	handles := []driver.Handle{f.running(launch("a", "m1", 1)), f.running(launch("a", "m2", 1))}
	f.cloud.Protect(account, "a", "m1", true)
	failures := f.Delete(f.ctx, scope, handles)
	f.class(failures[0], driver.ClassTerminal)
	f.Expect(failures[1]).NotTo(HaveOccurred())
}
