package cloud_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/example/cloud"
)

// TestCapacityShowsLate: the call is accepted, and the operation fails once it has made the parts.
func TestCapacityShowsLate(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.SetCapacity("a", "small", false, 1)
	first, second := f.create("a", "m1", "r1"), f.create("a", "m2", "r2")
	f.settle()
	f.Expect(f.get("operations/" + first.ID).Status).To(Equal(cloud.StatusDone))
	failed := f.get("operations/" + second.ID)
	f.Expect(failed.Status).To(Equal(cloud.StatusFailed))
	f.Expect(failed.Failure.Code).To(Equal(cloud.CodeZoneExhausted))
	f.Expect(f.get("zones/a/machines/m2").status).To(Equal(http.StatusNotFound))
	f.Expect(f.Resources(account, map[string]string{"request": "r2"})).To(HaveLen(3), "parts are left behind")

	large := body("r3")
	large.MachineType = "large"
	spot := body("r4")
	spot.Spot = true
	others := []reply{
		f.do(http.MethodPut, "zones/a/machines/m3", large),
		f.do(http.MethodPut, "zones/a/machines/m4", spot),
		f.create("b", "m5", "r5"),
	}
	f.settle()
	for i, o := range others {
		f.Expect(f.get("operations/"+o.ID).Status).To(Equal(cloud.StatusDone), fmt.Sprintf("other type, market or zone: %d", i))
	}
	f.delete("zones/a/machines/m1")
	f.settle()
	again := f.create("a", "m6", "r6")
	f.settle()
	f.Expect(f.get("operations/"+again.ID).Status).To(Equal(cloud.StatusDone), "a deletion makes room")
}

// TestRoomIsCountedForWhatHasIt: a creation that is cancelled had none yet, and where nothing is counted, a deletion adds nothing.
func TestRoomIsCountedForWhatHasIt(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.SetCapacity("a", "small", false, 1)
	for _, zone := range []string{"a", "b"} {
		f.create(zone, "m1", "r1"+zone)
		f.delete("zones/" + zone + "/machines/m1")
		f.settle()
		f.create(zone, "m1", "r2"+zone)
		f.settle()
		f.delete("zones/" + zone + "/machines/m1")
		f.settle()
		f.create(zone, "m2", "r3"+zone)
		f.create(zone, "m3", "r4"+zone)
		f.settle()
	}
	f.Expect(names(f.get("machines").Items)).To(Equal([]string{"m2", "m2", "m3"}))
}

// TestZonesRunOut of capacity or of addresses, one or all of them.
func TestZonesRunOut(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	n := 0
	outcome := func(zone string) string {
		n++
		o := f.create(zone, fmt.Sprintf("m%d", n), fmt.Sprintf("r%d", n))
		f.settle()
		if o = f.get("operations/" + o.ID); o.Failure != nil {
			return o.Failure.Code
		}
		return o.Status
	}
	f.Exhaust("a")
	f.Expect([]string{outcome("a"), outcome("b")}).To(Equal([]string{cloud.CodeZoneExhausted, cloud.StatusDone}))
	f.Exhaust()
	f.Expect([]string{outcome("b"), outcome("c")}).To(Equal([]string{cloud.CodeZoneExhausted, cloud.CodeZoneExhausted}))
	f.Restore("a")
	f.Expect([]string{outcome("a"), outcome("c")}).To(Equal([]string{cloud.StatusDone, cloud.CodeZoneExhausted}))
	f.Restore()
	f.ExhaustAddresses("c")
	f.Expect([]string{outcome("b"), outcome("c")}).To(Equal([]string{cloud.StatusDone, cloud.CodeAddressesExhausted}))
}

// TestQuotas: that of machines refuses the call, that of addresses fails the operation.
func TestQuotas(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.SetQuotas(account, cloud.Quotas{Machines: 2, Addresses: 1})
	first := f.create("a", "m1", "r1")
	o := f.create("b", "m2", "r2")
	f.refused(f.create("c", "m3", "r3"), http.StatusForbidden, cloud.CodeQuotaExceeded)
	f.settle()
	f.Expect(f.get("operations/" + first.ID).Status).To(Equal(cloud.StatusDone))
	failed := f.get("operations/" + o.ID)
	f.Expect(failed.Failure).To(HaveField("Code", cloud.CodeQuotaExceeded))
	f.Expect(f.create("c", "m3", "r3").status).To(Equal(http.StatusAccepted), "the failed one does not count")
}

// TestLimitsAreByAccountAndGroup: a bucket that fills with time, and Retry-After is when there is a call again.
func TestLimitsAreByAccountAndGroup(t *testing.T) {
	f := newFixture(t, cloud.Options{Limits: map[cloud.Group]cloud.Limit{
		cloud.Creates: {PerSecond: 0.5, Burst: 2}, cloud.Lists: {PerSecond: 1, Burst: 1},
	}})
	f.AddAccount("other", "token-of-other")
	f.Expect(f.create("a", "m1", "r1").status).To(Equal(http.StatusAccepted))
	f.Expect(f.create("a", "m2", "r2").status).To(Equal(http.StatusAccepted))
	refused := f.create("a", "m3", "r3")
	f.refused(refused, http.StatusTooManyRequests, cloud.CodeRateLimited)
	f.Expect(refused.header.Get("Retry-After")).To(Equal("2"))
	f.Expect(f.get("machines").status).To(Equal(http.StatusOK), "another group")
	f.Expect(f.get("machines").status).To(Equal(http.StatusTooManyRequests))
	f.Expect(f.get(m1).status).To(Equal(http.StatusOK), "a group without a limit")
	f.step(time.Second)
	f.Expect(f.create("a", "m3", "r3").header.Get("Retry-After")).To(Equal("1"), "half a call has come back")
	f.step(time.Second)
	f.Expect(f.create("a", "m3", "r3").status).To(Equal(http.StatusAccepted))
	f.Expect(f.create("a", "m4", "r4").status).To(Equal(http.StatusTooManyRequests))
	f.Expect(f.Count(account, "owner", "me").Creates).To(Equal(3))
}

// TestThrottledForATime: everything is refused, with the time that is left.
func TestThrottledForATime(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.Throttle(account, 5*time.Minute)
	f.step(time.Minute)
	refused := f.get("machines")
	f.refused(refused, http.StatusTooManyRequests, cloud.CodeRateLimited)
	f.Expect(refused.header.Get("Retry-After")).To(Equal("240"))
	f.step(4 * time.Minute)
	f.Expect(f.get("machines").status).To(Equal(http.StatusOK))
}

// TestCredentials expire, are renewed, rotated and revoked.
func TestCredentials(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	status := func() string {
		if r := f.get("machines"); r.status != http.StatusOK {
			return r.Error.Code
		}
		return ""
	}
	f.Expect(status()).To(BeEmpty())
	f.ExpireToken(account, token, time.Hour)
	f.Expect(status()).To(BeEmpty())
	f.step(time.Hour)
	f.Expect(status()).To(Equal(cloud.CodeTokenExpired))
	f.AddToken(account, token)
	f.Expect(status()).To(BeEmpty())

	f.AddToken(account, "rotated")
	f.RevokeToken(account, token)
	f.Expect(status()).To(Equal(cloud.CodeUnauthenticated))
	f.token = "rotated"
	f.Expect(status()).To(BeEmpty())
	f.token = ""
	f.Expect(status()).To(Equal(cloud.CodeUnauthenticated))
}
