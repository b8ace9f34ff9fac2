package arm_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	. "github.com/onsi/gomega"

	simulated "millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// TestAPutOfAnExistingMachine changes what it names and nothing else, unlike other PUTs; If-None-Match has one value.
func TestAPutOfAnExistingMachine(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.running("m1")
	put := func(vm armcompute.VirtualMachine, o armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions) error {
		_, err := a.machines.BeginCreateOrUpdate(a.ctx, simulated.DefaultGroup, "m1", vm, &o)
		return err
	}
	a.Expect(put(body(), armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: ptr(`W/"1"`)})).
		To(haveCode(400, "InvalidParameter"))
	a.Expect(put(body(), armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: ptr("*")})).
		To(haveCode(412, "PreconditionFailed"))
	a.Expect(put(body(), armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfMatch: ptr(`W/"1"`)})).
		To(haveCode(412, "PreconditionFailed"))
	without := body(func(vm *armcompute.VirtualMachine) { vm.Tags = nil })
	a.Expect(put(without, armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{})).To(Succeed())
	out, err := a.machines.Get(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.Tags).To(HaveKeyWithValue("team", HaveValue(Equal("blue"))))
	changed := body(func(vm *armcompute.VirtualMachine) { vm.Properties.OSProfile.CustomData = ptr("b3RoZXI=") })
	a.Expect(put(changed, armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{})).To(haveCode(409, "PropertyChangeNotAllowed"))
}

// TestBucketsAreOfPrincipals: Resource Manager counts the requests of each for itself.
func TestBucketsAreOfPrincipals(t *testing.T) {
	a := newTenant(t, simulated.Options{Throttles: map[string]simulator.Throttle{
		simulated.DefaultSubscription + "/read": {Burst: 1, RefillPerSecond: 0.2},
	}})
	get := func(caller string) int {
		return a.callAs(caller, http.MethodGet, strings.TrimSuffix(a.id(""), "/")+"?api-version=2026-04-01", nil)
	}
	a.Expect([]int{get("one"), get("one"), get("other")}).To(Equal([]int{200, 429, 200}))
	a.clock.Step(5 * time.Second)
	a.Expect(get("one")).To(Equal(200))
}

// TestChangesByTheControlInterface are those without a request to Resource Manager.
func TestChangesByTheControlInterface(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.running("m1")
	change := func(verb string, body map[string]any) error { return a.sim.Do(a.ctx, http.MethodPost, verb, body, nil) }
	a.Expect(change("failupdate", map[string]any{"id": a.id("m1"), "code": "VMExtensionProvisioningError"})).To(Succeed())
	a.Expect(a.power("m1")).To(Equal([]string{"ProvisioningState/failed/VMExtensionProvisioningError", "PowerState/running"}))
	a.Expect(change("failupdate", map[string]any{"id": a.id("m1")})).To(Succeed())
	a.Expect(a.power("m1")).To(Equal([]string{"ProvisioningState/succeeded", "PowerState/running"}))
	a.Expect(change("silence", map[string]any{"id": a.id("m1"), "silent": true})).To(Succeed())
	a.Expect(a.power("m1")).To(BeEmpty())
	a.Expect(change("silence", map[string]any{"id": a.id("m2"), "silent": true})).To(MatchError(ContainSubstring("404")))
	group := strings.Split(a.id("m1"), "/providers/")[0]
	a.Expect(change("removegroup", map[string]any{"id": group})).To(Succeed())
	_, err := a.machines.Get(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).To(haveCode(404, "ResourceGroupNotFound"))
	a.Expect(a.kinds()).To(BeEmpty())
}
