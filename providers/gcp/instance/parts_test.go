package instance_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// disk makes a disk with the mark of an owner.
func (f *fixture) disk(name, uid, owner string) {
	raw, err := json.Marshal(map[string]any{"name": name, "sizeGb": "10", "labels": map[string]string{
		instance.LabelOwnerUID: uid, instance.LabelOwner: driver.OwnerDigest(owner), instance.LabelLineage: "u_e_1",
	}})
	f.Expect(err).NotTo(HaveOccurred())
	r := httptest.NewRequest(http.MethodPost, "/compute/v1/projects/"+project+"/zones/"+zoneA+"/disks", bytes.NewReader(raw))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	f.cloud.ServeHTTP(w, r)
	f.Expect(w.Code).To(Equal(http.StatusOK))
}

// TestWhatOutlivesItsInstance is ended if it carries both halves of the mark and nothing uses it.
func TestWhatOutlivesItsInstance(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(launch(zoneA, "one", 1))
	f.disk("left", "uid-one", "ns/one")
	f.disk("half", "uid-one", "ns/other")
	f.disk("theirs", "uid-two", "ns/two")
	other := handle(launch(zoneA, "three", 1), "")
	forged := driver.Handle{OwnerUID: `x") OR (name = "theirs`, Owner: "ns/x"}
	answers := f.Cleanup(f.ctx, scope, []driver.Handle{h, other, forged})
	f.Expect(answers[0].Value).To(ConsistOf("disk left", HavePrefix("disk one-")))
	f.Expect(answers[1:]).To(HaveEach(driver.Answer[[]string]{}))
	left, err := f.ListLeftovers(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(left).To(ConsistOf(HaveField("ID", "half"), And(
		HaveField("ID", "theirs"), HaveField("Kind", "disk"), HaveField("OwnerUID", BeEquivalentTo("uid-two")), HaveField("Lineage", "u_e_1"),
		HaveField("Created", Not(BeZero())))))
	f.fault(simulator.Fault{Action: "disks.delete", Count: 1, Error: &simulator.APIError{Code: "forbidden"}})
	two := driver.Handle{OwnerUID: "uid-two", Owner: "ns/two"}
	f.class(f.Cleanup(f.ctx, scope, []driver.Handle{two})[0].Err, driver.ClassAuth)
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{two})[0].Value).To(ConsistOf("disk theirs"))
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{two})[0].Value).To(BeEmpty())
}

// TestRemark writes the lineage of what carries the mark, and nothing else.
func TestRemark(t *testing.T) {
	f := newFixture(t, compute.Options{})
	mine, theirs := f.running(launch(zoneA, "mine", 1)), f.running(launch(zoneA, "theirs", 1))
	f.disk("half", "uid-mine", "ns/other")
	notMine := theirs
	notMine.OwnerUID = "uid-mine"
	errs := f.Remark(f.ctx, scope, []driver.Handle{mine, notMine, {ProviderID: "nonsense"}}, "v_f_2")
	f.Expect(errs[0]).NotTo(HaveOccurred())
	f.class(errs[1], driver.ClassNotFound)
	f.class(errs[2], driver.ClassNotFound)
	lineages := map[string]string{}
	for _, i := range f.cloud.Instances(project) {
		lineages[i.Name] = i.Labels[instance.LabelLineage]
		f.Expect(i.Labels).To(HaveKeyWithValue("team", "blue"))
	}
	for _, d := range f.cloud.Disks(project) {
		lineages["disk "+d.Name[:4]] = d.Labels[instance.LabelLineage]
	}
	f.Expect(lineages).To(Equal(map[string]string{
		"mine": "v_f_2", "theirs": "u_e_1", "disk mine": "v_f_2", "disk thei": "u_e_1", "disk half": "u_e_1",
	}))
	f.cloud.ClearCalls()
	f.Expect(f.Remark(f.ctx, scope, []driver.Handle{mine}, "v_f_2")).To(Equal([]error{nil}))
	f.Expect(f.count("instances.setLabels")).To(BeZero(), "it has that lineage")
	f.fault(simulator.Fault{Action: "instances.setLabels", Count: 1, Error: &simulator.APIError{Code: "conditionNotMet"}})
	f.Expect(f.Remark(f.ctx, scope, []driver.Handle{mine}, "w_g_3")[0]).To(HaveOccurred(), "a user has changed the labels meanwhile")
}

// TestADisksListThatLacksAZone without saying so does not show that nothing is left there: that zone is asked for its own.
func TestADisksListThatLacksAZone(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(launch(zoneA, "one", 1))
	f.Expect(f.cloud.Vanish(project, zoneA, "one")).To(Succeed())
	f.disk("left", "uid-one", "ns/one")
	f.cloud.SetIncomplete("", zoneA)
	f.fault(simulator.Fault{Action: "disks.list", Count: 1, Error: &simulator.APIError{Code: "backendError"}})
	f.class(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Err, driver.ClassUnknown)
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]).To(Equal(driver.Answer[[]string]{Value: []string{"disk left"}}))
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]).To(Equal(driver.Answer[[]string]{}))

	forged := h
	forged.ProviderID = "gce://" + project + "/nowhere/one"
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{forged})[0]).To(Equal(driver.Answer[[]string]{}), "in no zone there is nothing")
	before := f.count("disks.list")
	f.cloud.SetIncomplete("")
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]).To(Equal(driver.Answer[[]string]{}))
	f.Expect(f.count("disks.list")).To(Equal(before), "one list is enough where it is whole")
}
