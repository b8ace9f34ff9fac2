package cloud_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/example/cloud"
)

// TestSpotIsReclaimed: the machine is stopped and stays, until a user starts or deletes it.
func TestSpotIsReclaimed(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	in := body("r1")
	in.Spot = true
	f.do(http.MethodPut, "zones/a/machines/m1", in)
	f.Expect(f.Interrupt(account, "a", "m1")).To(BeFalse(), "it is still being created")
	f.settle()
	f.Expect(f.Interrupt(account, "a", "m1")).To(BeTrue())
	m := f.get("zones/a/machines/m1")
	f.Expect(m.State).To(Equal(cloud.StateStopped))
	f.Expect(m.Interrupted).To(BeTrue())
	f.Expect(m.Failure.Code).To(Equal(cloud.CodeSpotReclaimed))
	f.Expect(f.get("power").Items[0].On).To(BeFalse())
	f.Expect(f.get("power").Items[0].Failure.Code).To(Equal(cloud.CodeSpotReclaimed))
	f.Expect(f.Start(account, "a", "m1")).To(BeTrue())
	f.Expect(f.get("zones/a/machines/m1").Interrupted).To(BeFalse())
	f.Expect(f.get("zones/a/machines/m1").State).To(Equal(cloud.StateRunning))
}

// TestPowerIsShownByTheSlowCallAlone, which has a limit of its own.
func TestPowerIsShownByTheSlowCallAlone(t *testing.T) {
	f := newFixture(t, cloud.Options{Limits: map[cloud.Group]cloud.Limit{cloud.Slow: {PerSecond: 0.1, Burst: 1}}})
	f.create("a", "m1", "r1")
	f.Expect(f.get("power").Items).To(BeEmpty(), "it has not started")
	f.settle()
	f.Expect(f.get("power").Items[0].On).To(BeTrue())
	f.step(10 * time.Second)
	f.Expect(f.get("power?label=owner=you").Items).To(BeEmpty())
	f.Expect(f.PowerOff(account, "a", "m1")).To(BeTrue())
	f.refused(f.get("power"), http.StatusTooManyRequests, cloud.CodeRateLimited)
	f.step(10 * time.Second)
	off := f.get("power").Items[0]
	f.Expect(off.On).To(BeFalse())
	f.Expect(off.Failure.Code).To(Equal(cloud.CodePoweredOff))
	f.Expect(f.get("zones/a/machines/m1").State).To(Equal(cloud.StateRunning))
	f.Expect(f.get("machines").Items[0].State).To(Equal(cloud.StateRunning))
	f.Expect(f.Stop(account, "a", "m1")).To(BeTrue())
	f.Expect(f.get("machines").Items[0].State).To(Equal(cloud.StateStopped))
}

// TestAMachineThatIsStoppedWhileItStarts stays so.
func TestAMachineThatIsStoppedWhileItStarts(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.create("a", "m1", "r1")
	f.step(4 * time.Second)
	f.Expect(f.Stop(account, "a", "m1")).To(BeTrue())
	f.settle()
	f.Expect(f.get("zones/a/machines/m1").State).To(Equal(cloud.StateStopped))
}

// TestLists: pages in a stable order; values of one key are alternatives, keys are conditions.
func TestLists(t *testing.T) {
	f := newFixture(t, cloud.Options{PageSize: 2})
	for i, zone := range []string{"a", "b", "c", "a", "b"} {
		f.create(zone, fmt.Sprintf("m%d", i), fmt.Sprintf("r%d", i))
	}
	var found []string
	pages := 0
	for query, more := (url.Values{}), true; more; pages++ {
		page := f.get("machines?" + query.Encode())
		f.Expect(len(page.Items)).To(BeNumerically("<=", 2))
		found = append(found, names(page.Items)...)
		query.Set("pageToken", page.NextPageToken)
		more = page.NextPageToken != ""
	}
	f.Expect(pages).To(Equal(3))
	f.Expect(found).To(Equal([]string{"m0", "m3", "m1", "m4", "m2"}), "by zone and name, each once")

	for query, want := range map[string][]string{
		"label=request=r1":                            {"m1"},
		"label=request=r1&label=request=r2":           {"m1", "m2"},
		"label=request=r1&label=owner=me":             {"m1"},
		"label=request=r1&label=owner=you":            {},
		"label=owner&pageSize=1":                      {"m0"},
		"label=nothing":                               {},
		"name=m3&name=m4&name=m9":                     {"m3", "m4"},
		"name=m3&label=request=r4":                    {},
		"pageSize=100&label=owner=me":                 {"m0", "m3"},
		"name=" + url.QueryEscape("../../operations"): {},
	} {
		f.Expect(names(f.get("machines?"+query).Items)).To(Equal(want), query)
	}
	f.refused(f.get("machines?filter=x"), http.StatusBadRequest, cloud.CodeInvalidArgument)
	f.refused(f.get("machines?pageSize=0"), http.StatusBadRequest, cloud.CodeInvalidArgument)
	f.refused(f.get("machines?pageSize=x"), http.StatusBadRequest, cloud.CodeInvalidArgument)
	f.Expect(f.get("machines?name=m3&name=m4").NextPageToken).To(BeEmpty(), "a full page that is the last")
	f.Expect(f.get("types").Items).To(HaveLen(2))
	f.Expect(f.get("types?name=large").Items[0].CPUs).To(Equal(8))
}

// TestOperationsAreListed, by ID, kind, status and label, for as long as they are kept.
func TestOperationsAreListed(t *testing.T) {
	f := newFixture(t, cloud.Options{Retention: time.Minute})
	f.Exhaust("b")
	a, b := f.create("a", "m1", "r1"), f.create("b", "m2", "r2")
	f.step(10 * time.Second)
	f.delete("zones/a/machines/m1")
	f.Expect(f.get("operations").Items).To(HaveLen(3))
	f.Expect(f.get("operations?kind=CreateMachine").Items).To(HaveLen(2))
	f.Expect(f.get("operations?kind=CreateMachine&label=request=r1").Items).To(HaveLen(1))
	f.Expect(f.get("operations?status=failed&label=owner=me").Items).To(HaveExactElements(HaveField("ID", b.ID)))
	f.Expect(f.get("operations?id=" + a.ID + "&id=none").Items).To(HaveExactElements(HaveField("Status", cloud.StatusDone)))
	f.step(time.Minute)
	f.Expect(f.get("operations").Items).To(HaveLen(1), "the deletion ended later")
}

// TestEveryAccountHasItsOwn resources, names and tokens.
func TestEveryAccountHasItsOwn(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.AddAccount("other", "token-of-other")
	f.create("a", "m1", "r1")
	f.Expect(f.Resources("other", nil)).To(BeEmpty())
	f.token = "token-of-other"
	f.refused(f.get("machines"), http.StatusForbidden, cloud.CodePermissionDenied)
	f.refused(f.create("a", "m2", "r2"), http.StatusForbidden, cloud.CodePermissionDenied)
	f.Expect(f.Count(account, "owner", "me").Creates).To(Equal(1))
}
