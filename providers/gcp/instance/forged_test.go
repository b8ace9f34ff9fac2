package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
)

// TestForgedHandles lead to nothing, and to no call outside of the project.
func TestForgedHandles(t *testing.T) {
	f := newFixture(t, compute.Options{Projects: []string{project, "other-project"}})
	f.running(launch(zoneA, "one", 1))
	for _, id := range []string{
		"gce://other-project/" + zoneA + "/one", "gce:///" + zoneA + "/one", "gce://" + project + "/" + zoneA + "/../disks/one",
		"gce://" + project + "/" + zoneA + "/one/setLabels", "gce://" + project + "/" + zoneA + "/%2e%2e", "aws:///a/i-1",
		"gce://" + project + "/" + zoneA + `/one") OR (name = "two`, "xgce://" + project + "/" + zoneA + "/one",
		"gce://" + project + "/" + zoneA + "/",
	} {
		f.cloud.ClearCalls()
		h := driver.Handle{Scope: scope, ProviderID: id, OwnerUID: "uid-one", Owner: "ns/one"}
		f.class(f.observe(h).Err, driver.ClassNotFound)
		f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
		f.class(f.Unprotect(f.ctx, scope, h), driver.ClassNotFound)
		f.Expect(f.count("")).To(BeZero(), id)
	}
	f.Expect(f.cloud.Instances(project)).To(HaveLen(1))
}

// TestAForgedOperation, of another launch or about something else, says nothing about this one.
func TestAForgedOperation(t *testing.T) {
	f := newFixture(t, compute.Options{})
	victim := f.accepted(launch(zoneA, "victim", 1))
	mine := launch(zoneA, "mine", 1)
	h := handle(mine, victim.Operation)
	f.class(f.observe(h).Err, driver.ClassNotFound)
	h.Name = "victim"
	f.class(f.observe(h).Err, driver.ClassNotFound)
	for _, operation := range []string{"../instances/victim", "none"} {
		h.Operation = operation
		f.Expect(f.observe(h).Err).To(HaveOccurred())
	}
}

// TestTheMarkIsReadFromTheCloud: what an instance carries counts, not what the handle says.
func TestTheMarkIsReadFromTheCloud(t *testing.T) {
	f := newFixture(t, compute.Options{})
	theirs := f.running(launch(zoneA, "one", 1))
	mine := theirs
	mine.OwnerUID, mine.Owner = "uid-mine", "ns/mine"
	f.Expect(mine.Owns(f.observe(mine).Value)).To(BeFalse())
	f.Expect(theirs.Owns(f.observe(mine).Value)).To(BeTrue())
	f.Expect(f.Mark(mine)).To(And(ContainSubstring(instance.LabelOwnerUID+"=uid-mine"), ContainSubstring(driver.OwnerDigest("ns/mine"))))
}
