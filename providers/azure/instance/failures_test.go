package instance_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

const quota = "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota."

// codes are what codes of Azure mean of a call, with the status that they come with; late is what they mean of a launch that had been
// accepted, where that differs.
var codes = []struct {
	status        int
	code, message string
	class, late   driver.Class
}{
	{409, "SkuNotAvailable", "", driver.ClassCapacity, ""},
	{409, "AllocationFailed", "", driver.ClassCapacity, ""},
	{409, "ZonalAllocationFailed", "", driver.ClassCapacity, ""},
	{409, "OverconstrainedZonalAllocationRequest", "", driver.ClassCapacity, ""},
	{400, "SubnetIsFull", "", driver.ClassCapacity, ""},
	{409, "OperationNotAllowed", quota, driver.ClassQuota, ""},
	{409, "QuotaExceeded", "", driver.ClassQuota, ""},
	{409, "OperationNotAllowed", "the VM is marked for deletion", driver.ClassRefused, ""},
	{429, "TooManyRequests", "", driver.ClassThrottle, ""},
	{429, "ANewCode", "", driver.ClassThrottle, driver.ClassRefused},
	{409, "RetryableErrorDueToTooManyCalls", "", driver.ClassThrottle, ""},
	{401, "InvalidAuthenticationTokenTenant", "", driver.ClassAuth, ""},
	{403, "AuthorizationFailed", "", driver.ClassAuth, ""},
	{403, "LinkedAuthorizationFailed", "", driver.ClassAuth, ""},
	{403, "ANewCode", "", driver.ClassAuth, driver.ClassRefused},
	{400, "InvalidParameter", "", driver.ClassTerminal, ""},
	{409, "PropertyChangeNotAllowed", "", driver.ClassTerminal, ""},
	{409, "ScopeLocked", "", driver.ClassTerminal, driver.ClassUnresolved},
	{404, "ResourceNotFound", "", driver.ClassNotFound, driver.ClassRefused},
	{409, "SpotMaxPriceBelowMarketPrice", "", driver.ClassCapacity, ""},
	{409, "BadRequestMaxPriceLessThanCurrentPrice", "", driver.ClassCapacity, ""},
	{400, "OSProvisioningClientError", "", driver.ClassTerminal, ""},
	{404, "PlatformImageNotFound", "", driver.ClassUnresolved, ""},
	{400, "InvalidResourceReference", "", driver.ClassUnresolved, ""},
	{404, "ResourceGroupNotFound", "", driver.ClassUnresolved, ""},
	{409, "ConflictingUserInput", "", driver.ClassRefused, ""},
	{400, "NicReservedForAnotherVm", "", driver.ClassRefused, ""},
	{409, "OperationPreempted", "", driver.ClassRefused, ""},
	{422, "ANewCode", "", driver.ClassRefused, ""},
	{500, "InternalServerError", "", driver.ClassUnknown, driver.ClassRefused},
	{503, "AllocationFailed", "", driver.ClassCapacity, ""},
	{408, "ANewCode", "", driver.ClassUnknown, driver.ClassRefused},
}

// TestEveryCodeHasAClass, of each call, and of a launch that fails late.
func TestEveryCodeHasAClass(t *testing.T) {
	for _, c := range codes {
		t.Run(c.code+" "+http.StatusText(c.status), func(t *testing.T) {
			f := newFixture(t, arm.Options{})
			late := c.late
			if late == "" {
				late = c.class
			}
			f.cloud.AddFault(simulator.Fault{
				Action: "VirtualMachines_CreateOrUpdate", Count: 1, LaunchFailure: &simulator.Failure{Code: c.code, Message: c.message},
			})
			h := f.running(launch("m1"))
			want := And(HaveField("State", driverv1.InstanceFailed), HaveField("Refused", late), HaveField("StateCode", c.code),
				HaveField("StateMessage", c.message), HaveField("ProviderID", h.ProviderID))
			f.Expect(f.list()[0]).To(want)
			f.Expect(f.list()[0]).To(want)
			f.Expect(f.calls()["VirtualMachines_InstanceView"]).To(Equal(1), "asked once")
			f.Expect(f.observe(h).Value).To(want)

			f.fault(simulator.Fault{Action: "*", Error: &simulator.APIError{
				Code:       c.code,
				Status:     c.status,
				Message:    c.message + " Correlation ID: '00000000-0000-0000-0000-000000000007'.",
				RetryAfter: 17 * time.Second,
			}})
			create, one, many := c.class, c.class, c.class
			switch c.code {
			case "ScopeLocked", "ResourceNotFound": // A launch waits until it is otherwise.
				create = driver.ClassUnresolved
			case "ResourceGroupNotFound":
				one, many = driver.ClassNotFound, ""
			}
			for _, l := range []driver.Launch[*infrav1.AzureMachine]{launch("m2"), launch("m3", static("10.1.0.99"))} {
				_, err := f.Create(f.ctx, l)
				if c.class == driver.ClassUnknown && l.Name == "m3" {
					create = driver.ClassRefused // It was the GET of the interface.
				}
				f.class(err, create)
				var e *driver.Error
				f.Expect(errors.As(err, &e)).To(BeTrue())
				f.Expect(e).To(And(HaveField("Code", c.code), HaveField("RetryAfter", 17*time.Second), HaveField("OnlyPlace", c.code == "SubnetIsFull"),
					HaveField("OnlyTerms", strings.Contains(c.code, "Price"))))
				f.Expect(err.Error()).NotTo(ContainSubstring("00000007"), "messages do not change from call to call")
			}
			f.class(f.observe(h).Err, one)
			f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], one)
			f.class(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Err, many)
			_, err := f.List(f.ctx, scope)
			f.class(err, many)
			_, err = f.ListStatus(f.ctx, scope)
			f.class(err, c.class)
			_, err = f.ListLeftovers(f.ctx, scope)
			f.class(err, many)
		})
	}
}

// TestAFailedLaunchLeavesNothing: CAPZ #6441, MCM-azure #298: interfaces of machines that failed to be made were left.
func TestAFailedLaunchLeavesNothing(t *testing.T) {
	f := newFixture(t, arm.Options{RefusedLaunchesLeaveInterfaces: true})
	f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{Code: "ZonalAllocationFailed", Message: "no room", Late: true})
	h := f.running(launch("late"))
	f.Expect(f.observe(h).Value.Refused).To(Equal(driver.ClassCapacity))
	f.deleted(h)
	first, _ := f.cleaned(h)
	f.Expect(first).To(BeEmpty(), "the interface went with the machine")

	f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{Code: "ZonalAllocationFailed", Message: "no room"})
	l := launch("now")
	_, err := f.Create(f.ctx, l)
	f.class(err, driver.ClassCapacity)
	f.Expect(f.kinds()).To(Equal(map[string]int{"networkInterfaces": 1}))
	left, err := f.ListLeftovers(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(left).
		To(ConsistOf(And(HaveField("Kind", "networkInterfaces"), HaveField("OwnerUID", l.OwnerUID), HaveField("Lineage", l.Lineage))))
	other := handle(launch("other"))
	first, _ = f.cleaned(other)
	f.Expect(first).To(BeEmpty())
	f.Expect(f.kinds()).To(Equal(map[string]int{"networkInterfaces": 1}), "it is not the other's")
	first, second := f.cleaned(handle(l))
	f.Expect(first).To(ConsistOf(HavePrefix("networkInterfaces/now-")))
	f.Expect(second).To(BeEmpty())
	f.Expect(f.kinds()).To(BeEmpty())
}

// TestALostAnswer of a launch leaves one machine, which is found by its name.
func TestALostAnswer(t *testing.T) {
	for cut, there := range map[simulator.Cut]bool{simulator.CutBefore: false, simulator.CutAfter: true} {
		f := newFixture(t, arm.Options{})
		f.fault(simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", Count: 1, Cut: cut})
		l := launch("m1")
		_, err := f.Create(f.ctx, l)
		f.class(err, driver.ClassUnknown)
		f.Expect(err.Error()).NotTo(ContainSubstring("127.0.0.1"))
		_, err = f.Create(f.ctx, l)
		if !there {
			f.Expect(err).NotTo(HaveOccurred())
		} else {
			f.class(err, driver.ClassConflict)
			f.Expect(handle(l).Owns(f.observe(handle(l)).Value)).To(BeTrue())
		}
		f.Expect(f.kinds()["virtualMachines"]).To(Equal(1))
	}
}

// TestEveryCallEndsByItsDeadline while Azure hangs, from the first byte or in the middle of an answer, and is of unknown outcome.
func TestEveryCallEndsByItsDeadline(t *testing.T) {
	for name, fault := range map[string]simulator.Fault{"no answer": {Action: "*", HoldAfter: true},
		"half an answer": {Action: "*", HoldBody: true}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, arm.Options{})
			h := f.running(launch("m1"))
			f.fault(fault)
			for _, call := range map[string]func(context.Context) error{
				"Create":  func(ctx context.Context) error { _, err := f.Create(ctx, launch("m2")); return err },
				"Observe": func(ctx context.Context) error { return f.Observe(ctx, scope, []driver.Handle{h})[0].Err },
				"List":    func(ctx context.Context) error { _, err := f.List(ctx, scope); return err },
				"Cleanup": func(ctx context.Context) error { return f.Cleanup(ctx, scope, []driver.Handle{h})[0].Err },
				"Status":  func(ctx context.Context) error { _, err := f.ListStatus(ctx, scope); return err },
			} {
				f.unknown(call)
			}
		})
	}
}

// TestCredentialsThatAreNone are of class Auth, and nothing of them is shown.
func TestCredentialsThatAreNone(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.tokens.err = errors.New("the secret is hunter2")
	_, err := f.Create(f.ctx, launch("m1"))
	f.class(err, driver.ClassAuth)
	f.Expect(err.Error()).
		To(And(Not(ContainSubstring("hunter2")), ContainSubstring("credentials of the provider's process: no answer from Microsoft Entra ID")))
	_, err = f.List(f.ctx, scope)
	f.class(err, driver.ClassAuth)
	f.Expect(f.calls()).To(BeEmpty())
}

// TestNoConnection had no effect.
func TestNoConnection(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.Driver = instance.New(session.Config{Credential: f.tokens, Cloud: at("http://127.0.0.1:1"), InsecureHTTP: true}, f.clock)
	_, err := f.Create(f.ctx, launch("m1"))
	f.class(err, driver.ClassRefused)
}

// TestForgedHandles lead to nothing that is outside of the scope, and nowhere else in the API.
func TestForgedHandles(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1"))
	before := f.calls()
	for _, id := range []string{
		"", "m1", "azure:///m1", strings.Replace(h.ProviderID, arm.DefaultSubscription, "00000000-0000-0000-0000-000000000002", 1),
		strings.Replace(h.ProviderID, "/nodes/", "/images/", 1), h.ProviderID + "/../../disks/x", h.ProviderID + "?api-version=1",
		h.ProviderID + "\n",
		strings.Replace(h.ProviderID, "m1", "..", 1), strings.Replace(h.ProviderID, "m1", "a%2fb", 1),
		strings.Replace(h.ProviderID, "Microsoft.Compute", "Microsoft.Network", 1),
	} {
		forged := driver.Handle{Scope: scope, ProviderID: id, Name: "../m1", OwnerUID: h.OwnerUID, Owner: h.Owner}
		f.class(f.observe(forged).Err, driver.ClassNotFound)
		f.class(f.Delete(f.ctx, scope, []driver.Handle{forged})[0], driver.ClassNotFound)
		f.class(f.Remark(f.ctx, scope, []driver.Handle{forged}, "x")[0], driver.ClassNotFound)
	}
	after := f.calls()
	f.Expect(after["VirtualMachines_Get"]).To(Equal(before["VirtualMachines_Get"]))
	f.Expect(after["VirtualMachines_Delete"]).To(BeZero())
	// Written in another case it is the same machine, and the answer has the right ID.
	h.ProviderID = strings.Replace(h.ProviderID, "resourceGroups/nodes", "resourcegroups/NODES", 1)
	f.Expect(f.observe(h).Value.ProviderID).To(HaveSuffix("/resourceGroups/nodes/providers/Microsoft.Compute/virtualMachines/m1"))
}

// TestOneHandleDoesNotSpoilTheOthers.
func TestOneHandleDoesNotSpoilTheOthers(t *testing.T) {
	f := newFixture(t, arm.Options{})
	there, gone := f.running(launch("m1")), handle(launch("m2"))
	answers := f.Observe(f.ctx, scope, []driver.Handle{gone, there})
	f.class(answers[0].Err, driver.ClassNotFound)
	f.Expect(answers[1].Value.State).To(Equal(driverv1.InstanceRunning))
	f.fault(
		simulator.Fault{
			Action:     "VirtualMachines_Delete",
			Parameters: map[string]string{"name": "m1"},
			Error:      &simulator.APIError{Code: "ScopeLocked"},
		},
	)
	f.running(launch("m2"))
	errs := f.Delete(f.ctx, scope, []driver.Handle{there, gone})
	f.class(errs[0], driver.ClassTerminal)
	f.Expect(errs[1]).NotTo(HaveOccurred())
}

// TestThrottlingEndsABatch: the rest of its calls would say the same.
func TestThrottlingEndsABatch(t *testing.T) {
	f := newFixture(t, arm.Options{})
	a, b := f.running(launch("m1")), f.running(launch("m2"))
	f.fault(simulator.Fault{Action: "*", Error: &simulator.APIError{Code: "TooManyRequests", RetryAfter: time.Minute}})
	before := len(f.cloud.Calls())
	for _, err := range f.Delete(f.ctx, scope, []driver.Handle{a, b}) {
		f.class(err, driver.ClassThrottle)
		f.Expect(driver.RetryAfterOf(err)).To(Equal(time.Minute))
	}
	for _, answer := range f.Observe(f.ctx, scope, []driver.Handle{a, b}) {
		f.class(answer.Err, driver.ClassThrottle)
	}
	f.Expect(f.cloud.Calls()).To(HaveLen(before+2), "one of each, and none of them repeated by the SDK")
}

// TestARefusalOfOneDoesNotEndABatch: a deny assignment or a policy may be about one machine alone; credentials that are not taken are not.
func TestARefusalOfOneDoesNotEndABatch(t *testing.T) {
	for _, code := range []string{"RequestDisallowedByPolicy", "DenyAssignmentAuthorizationFailed"} {
		f := newFixture(t, arm.Options{})
		a, b := f.running(launch("m1")), f.running(launch("m2"))
		f.fault(
			simulator.Fault{
				Action:     "*",
				Parameters: map[string]string{"name": "m1"},
				Error:      &simulator.APIError{Status: http.StatusForbidden, Code: code},
			},
		)
		answers := f.Observe(f.ctx, scope, []driver.Handle{a, b})
		f.class(answers[0].Err, driver.ClassAuth)
		f.Expect(answers[1].Value.State).To(Equal(driverv1.InstanceRunning))
		errs := f.Delete(f.ctx, scope, []driver.Handle{a, b})
		f.class(errs[0], driver.ClassAuth)
		f.Expect(errs[1]).NotTo(HaveOccurred())
	}

	f := newFixture(t, arm.Options{})
	a, b := f.running(launch("m1")), f.running(launch("m2"))
	f.fault(simulator.Fault{Action: "*", Error: &simulator.APIError{Status: http.StatusUnauthorized, Code: "ExpiredAuthenticationToken"}})
	before := len(f.cloud.Calls())
	for _, err := range f.Delete(f.ctx, scope, []driver.Handle{a, b}) {
		f.class(err, driver.ClassAuth)
	}
	for _, answer := range f.Observe(f.ctx, scope, []driver.Handle{a, b}) {
		f.class(answer.Err, driver.ClassAuth)
	}
	f.Expect(f.cloud.Calls()).To(HaveLen(before + 2))
}
