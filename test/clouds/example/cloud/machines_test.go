package cloud_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/example/cloud"
)

// TestAMachineIsCreatedStepByStep: every step shows at once, and the machine is certain only when the operation has ended.
func TestAMachineIsCreatedStepByStep(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	o := f.create("a", "m1", "r1")
	f.Expect(o.status).To(Equal(http.StatusAccepted))
	f.Expect(o.Status).To(Equal(cloud.StatusRunning))

	m := f.get("zones/a/machines/m1")
	f.Expect(m.State).To(Equal(cloud.StateCreating), "a read shows at once what a call has created")
	f.Expect(m.Operation).To(Equal(o.ID))
	f.Expect(f.get("machines").Items).To(HaveLen(1))

	for parts, kind := range []string{cloud.Addresses, cloud.Interfaces, cloud.Disks} {
		f.Expect(f.Resources(account, nil)).To(HaveLen(1 + parts))
		f.step(time.Second)
		f.Expect(f.get(kind).Items).To(HaveLen(1))
	}
	f.Expect(f.get("operations/" + o.ID).Status).To(Equal(cloud.StatusRunning))
	f.step(time.Second)
	f.Expect(f.get("operations/" + o.ID).Status).To(Equal(cloud.StatusDone))
	f.Expect(f.get("zones/a/machines/m1").State).To(Equal(cloud.StateStarting))
	f.step(5 * time.Second)
	f.Expect(f.get("zones/a/machines/m1").State).To(Equal(cloud.StateRunning))
	f.Expect(f.Resources(account, map[string]string{"owner": "me"})).To(HaveLen(4), "all parts carry the labels")
	f.Expect(f.Resources(account, map[string]string{"owner": "you"})).To(BeEmpty())
}

// TestADeletedMachineIsGone: deleted machines are not listed. The disk is deleted with the machine; interface and address stay, and an
// address cannot be deleted before its interface.
func TestADeletedMachineIsGone(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.create("a", "m1", "r1")
	f.settle()
	f.refused(f.delete("zones/a/interfaces/"+f.get("interfaces").Items[0].Name), http.StatusConflict, cloud.CodeResourceInUse)

	o := f.delete("zones/a/machines/m1")
	f.Expect(o.status).To(Equal(http.StatusAccepted))
	f.Expect(f.get("zones/a/machines/m1").State).To(Equal(cloud.StateDeleting))
	f.Expect(f.delete("zones/a/machines/m1").status).To(Equal(http.StatusAccepted), "repeating it is harmless")
	f.step(3 * time.Second)
	f.refused(f.get("zones/a/machines/m1"), http.StatusNotFound, cloud.CodeNotFound)
	f.refused(f.delete("zones/a/machines/m1"), http.StatusNotFound, cloud.CodeNotFound)
	f.Expect(f.get("machines").Items).To(BeEmpty())
	f.Expect(f.get("operations/" + o.ID).Status).To(Equal(cloud.StatusDone))

	f.Expect(f.get("disks").Items).To(BeEmpty())
	nic, address := f.get("interfaces").Items[0], f.get("addresses").Items[0]
	f.Expect(nic.UsedBy).To(BeEmpty())
	f.Expect(address.UsedBy).To(Equal(nic.Name))
	f.refused(f.delete("zones/a/addresses/"+address.Name), http.StatusConflict, cloud.CodeResourceInUse)
	f.Expect(f.delete("zones/a/interfaces/" + nic.Name).status).To(Equal(http.StatusAccepted))
	f.step(3 * time.Second)
	f.refused(f.get("zones/a/interfaces/"+nic.Name), http.StatusNotFound, cloud.CodeNotFound)
	f.Expect(f.delete("zones/a/addresses/" + address.Name).status).To(Equal(http.StatusAccepted))
	f.step(3 * time.Second)
	f.Expect(f.Resources(account, nil)).To(BeEmpty())
	f.Expect(f.Count(account, "owner", "me")).To(Equal(cloud.Count{Creates: 1, Live: 0, Most: 1}))
}

// TestNamesAreUniqueInAZone: the second creation of a name is refused, for any caller, until nothing has the name.
func TestNamesAreUniqueInAZone(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	first := f.create("a", "m1", "r1")
	f.refused(f.create("a", "m1", "r2"), http.StatusConflict, cloud.CodeNameTaken)
	f.Expect(f.create("b", "m1", "r3").status).To(Equal(http.StatusAccepted), "in another zone")
	f.Expect(f.create("a", "m1", "r1").ID).To(Equal(first.ID), "the same request gets the same operation")
	f.settle()
	f.Expect(f.create("a", "m1", "r1").Status).To(Equal(cloud.StatusDone))
	f.delete("zones/a/machines/m1")
	f.refused(f.create("a", "m1", "r2"), http.StatusConflict, cloud.CodeNameTaken)
	f.settle()
	f.Expect(f.create("a", "m1", "r1").Status).To(Equal(cloud.StatusDone), "a request has an effect once")
	f.Expect(f.get("zones/a/machines/m1").status).To(Equal(http.StatusNotFound))
	f.Expect(f.create("a", "m1", "r2").Status).To(Equal(cloud.StatusRunning))
	f.Expect(f.Count(account, "owner", "me")).To(Equal(cloud.Count{Creates: 3, Live: 2, Most: 2}))
}

// TestARequestIDIsGoodForOneRequest: with another zone, name or body it is refused; after the retention it is forgotten.
func TestARequestIDIsGoodForOneRequest(t *testing.T) {
	f := newFixture(t, cloud.Options{Retention: time.Minute})
	o := f.create("a", "m1", "r1")
	f.refused(f.create("b", "m1", "r1"), http.StatusConflict, cloud.CodeRequestIDReused)
	f.refused(f.create("a", "m2", "r1"), http.StatusConflict, cloud.CodeRequestIDReused)
	other := body("r1")
	other.UserData = []byte("other")
	f.refused(f.do(http.MethodPut, "zones/a/machines/m1", other), http.StatusConflict, cloud.CodeRequestIDReused)
	f.step(2 * time.Minute)
	f.refused(f.get("operations/"+o.ID), http.StatusNotFound, cloud.CodeNotFound)
	f.refused(f.create("a", "m1", "r1"), http.StatusConflict, cloud.CodeNameTaken)
}

// TestDeletionCancelsACreation: what was created by then stays or is deleted as with any machine.
func TestDeletionCancelsACreation(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	o := f.create("a", "m1", "r1")
	f.step(time.Second)
	f.delete("zones/a/machines/m1")
	failed := f.get("operations/" + o.ID)
	f.Expect(failed.Status).To(Equal(cloud.StatusFailed))
	f.Expect(failed.Failure.Code).To(Equal(cloud.CodeCancelled))
	f.settle()
	f.Expect(f.get("machines").Items).To(BeEmpty())
	f.Expect(f.get("disks").Items).To(BeEmpty())
	f.Expect(f.get("interfaces").Items).To(BeEmpty(), "it is no longer created")
	f.Expect(f.get("addresses").Items).To(HaveLen(1))
}

// TestRequestsWithoutAnID have nothing in common.
func TestRequestsWithoutAnID(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.Expect(f.create("a", "m1", "").status).To(Equal(http.StatusAccepted))
	f.Expect(f.create("a", "m2", "").status).To(Equal(http.StatusAccepted))
	f.refused(f.create("a", "m2", ""), http.StatusConflict, cloud.CodeNameTaken)
}

func TestWhatIsNotAsItShouldBeIsRefused(t *testing.T) {
	f := newFixture(t, cloud.Options{Types: []cloud.Type{{Name: "small"}, {Name: "rare", Zones: []string{"b"}}}})
	for name, test := range map[string]struct {
		path   string
		change func(*cloud.CreateMachine)
		status int
		code   string
	}{
		"zone":                       {"zones/x/machines/m", nil, http.StatusNotFound, cloud.CodeZoneNotFound},
		"name":                       {"zones/a/machines/M", nil, http.StatusBadRequest, cloud.CodeInvalidArgument},
		"long name":                  {"zones/a/machines/m23456789012345678901234567890123456789012", nil, http.StatusBadRequest, cloud.CodeInvalidArgument},
		"name with an escaped slash": {"zones/a/machines/m%2Fn", nil, http.StatusBadRequest, cloud.CodeInvalidArgument},
		"type":                       {"zones/a/machines/m", func(c *cloud.CreateMachine) { c.MachineType = "x" }, http.StatusBadRequest, cloud.CodeTypeNotFound},
		"type in zone":               {"zones/a/machines/m", func(c *cloud.CreateMachine) { c.MachineType = "rare" }, http.StatusBadRequest, cloud.CodeTypeNotInZone},
		"image":                      {"zones/a/machines/m", func(c *cloud.CreateMachine) { c.Image = "x" }, http.StatusNotFound, cloud.CodeImageNotFound},
		"user data":                  {"zones/a/machines/m", func(c *cloud.CreateMachine) { c.UserData = make([]byte, 32*1024+1) }, http.StatusBadRequest, cloud.CodeUserDataTooLarge},
		"label":                      {"zones/a/machines/m", func(c *cloud.CreateMachine) { c.Labels["a"] = "A" }, http.StatusBadRequest, cloud.CodeInvalidArgument},
		"label's value":              {"zones/a/machines/m", labelled("a", strings.Repeat("b", 65)), http.StatusBadRequest, cloud.CodeInvalidArgument},
		"long key":                   {"zones/a/machines/m", labelled(strings.Repeat("a", 65), "b"), http.StatusBadRequest, cloud.CodeInvalidArgument},
		"key":                        {"zones/a/machines/m", labelled("A", "b"), http.StatusBadRequest, cloud.CodeInvalidArgument},
		"many labels": {"zones/a/machines/m", func(c *cloud.CreateMachine) {
			for i := range 65 {
				c.Labels[fmt.Sprint(i)] = ""
			}
		}, http.StatusBadRequest, cloud.CodeInvalidArgument},
		"label's key": {"zones/a/machines/m", func(c *cloud.CreateMachine) { c.Labels[""] = "a" }, http.StatusBadRequest, cloud.CodeInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			g := *f
			g.WithT = NewWithT(t)
			in := body(name)
			in.Labels = map[string]string{}
			if test.change != nil {
				test.change(&in)
			}
			g.refused(g.do(http.MethodPut, test.path, in), test.status, test.code)
		})
	}
	f.Expect(f.Resources(account, nil)).To(BeEmpty())
	largest := body("largest")
	largest.UserData, largest.Labels = make([]byte, 32*1024), map[string]string{strings.Repeat("a", 64): strings.Repeat("b", 64)}
	for i := range 63 {
		largest.Labels[fmt.Sprint(i)] = ""
	}
	f.Expect(f.do(http.MethodPut, "zones/a/machines/largest", largest).status).To(Equal(http.StatusAccepted))
	rare := body("rare")
	rare.MachineType = "rare"
	f.Expect(f.do(http.MethodPut, "zones/b/machines/rare", rare).status).To(Equal(http.StatusAccepted))
	f.refused(f.delete("zones/a/interfaces/none"), http.StatusNotFound, cloud.CodeNotFound)
	f.refused(f.get("zones/a/interfaces/none"), http.StatusNotFound, cloud.CodeNotFound)
	f.refused(f.do(http.MethodPut, "zones/a/machines/m", "no object"), http.StatusBadRequest, cloud.CodeInvalidArgument)
	f.refused(f.get("nothing"), http.StatusNotFound, cloud.CodeNotFound)
	f.refused(f.do(http.MethodPost, "zones/a/machines/m", body("p")), http.StatusNotFound, cloud.CodeNotFound)
}

func labelled(key, value string) func(*cloud.CreateMachine) {
	return func(c *cloud.CreateMachine) { c.Labels[key] = value }
}

// TestProtection: the deletion of a protected machine is refused.
func TestProtection(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.create("a", "m1", "r1")
	f.settle()
	f.Expect(f.Protect(account, "a", "m1", true)).To(BeTrue())
	f.refused(f.delete("zones/a/machines/m1"), http.StatusConflict, cloud.CodeDeletionProtected)
	f.Expect(f.get("zones/a/machines/m1").State).To(Equal(cloud.StateRunning))
	f.Protect(account, "a", "m1", false)
	f.Expect(f.delete("zones/a/machines/m1").status).To(Equal(http.StatusAccepted))
}

// TestAMachineVanishes: another user deletes it at once.
func TestAMachineVanishes(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.create("a", "m1", "r1")
	f.settle()
	f.Expect(f.Vanish(account, "a", "m1")).To(BeTrue())
	f.Expect(f.Vanish(account, "a", "m1")).To(BeFalse())
	f.Expect(f.get("zones/a/machines/m1").status).To(Equal(http.StatusNotFound))
	f.Expect(f.Machines(account, nil)).To(BeEmpty())
	f.Expect(f.Resources(account, nil)).To(HaveLen(2))
}
