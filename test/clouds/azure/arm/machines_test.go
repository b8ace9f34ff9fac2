package arm_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	. "github.com/onsi/gomega"

	simulated "millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// TestALife: one PUT creates machine, interface and disks; one DELETE deletes those with the deleteOption Delete.
func TestALife(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	poller, err := a.put("m1", body())
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(a.power("m1")).To(Equal([]string{"ProvisioningState/creating"}))
	a.Expect(poller.Done()).To(BeFalse())
	_, err = poller.Poll(a.ctx)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(poller.Done()).To(BeFalse())
	a.clock.Step(create)
	_, err = poller.Poll(a.ctx)
	a.Expect(err).NotTo(HaveOccurred())
	out, err := poller.Result(a.ctx)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(*out.Properties.ProvisioningState).To(Equal("Succeeded"))
	a.Expect(out.Properties.OSProfile.CustomData).To(BeNil(), "no answer has it")
	a.Expect(out.Properties.NetworkProfile.NetworkInterfaces).To(HaveLen(1))
	a.Expect(a.kinds()).To(Equal(map[string]int{"virtualMachines": 1, "networkInterfaces": 1, "disks": 2}))
	for _, r := range a.server.Resources() {
		a.Expect(r.Tags).To(Equal(map[string]string{"team": "blue"}), r.ID)
	}

	deletion, err := a.machines.BeginDelete(a.ctx, strings.ToUpper(simulated.DefaultGroup), "M1", nil)
	a.Expect(err).NotTo(HaveOccurred(), "paths are not case-sensitive")
	a.clock.Step(20 * time.Second)
	_, err = deletion.Poll(a.ctx)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(deletion.Done()).To(BeTrue())
	_, err = a.machines.Get(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).To(haveCode(404, "ResourceNotFound"))
	a.Expect(a.kinds()).To(Equal(map[string]int{"disks": 1}), "the data disk has no deleteOption, and is detached")
	calls, err := a.sim.Calls(a.ctx, "VirtualMachines_CreateOrUpdate")
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(calls[0]).To(And(HaveField("Status", 201), HaveField("Caller", "a-user"), HaveField("Resources", []string{"m1"})))
	a.Expect(calls[0].Parameters).
		To(And(HaveKeyWithValue("zone", "1"), HaveKeyWithValue("vmSize", "Standard_D2s_v5"), HaveKeyWithValue("If-None-Match", "*")))
	a.Expect(fmt.Sprint(calls)).NotTo(ContainSubstring("a secret"))
}

// TestANameIsTakenOnce: with If-None-Match nothing is changed, without it only tags are.
func TestANameIsTakenOnce(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.running("m1")
	_, err := a.put("m1", body())
	a.Expect(err).To(haveCode(412, "PreconditionFailed"))
	_, err = a.machines.BeginCreateOrUpdate(
		a.ctx,
		simulated.DefaultGroup,
		"m1",
		body(func(vm *armcompute.VirtualMachine) { vm.Zones = nil }),
		nil,
	)
	a.Expect(err).To(haveCode(409, "PropertyChangeNotAllowed"))
	_, err = a.machines.BeginUpdate(
		a.ctx,
		simulated.DefaultGroup,
		"m1",
		armcompute.VirtualMachineUpdate{Tags: map[string]*string{"team": ptr("red")}},
		nil,
	)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(a.server.Resources()[0].Tags).To(Equal(map[string]string{"team": "red"}))
	_, err = a.machines.BeginDelete(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).NotTo(HaveOccurred())
	_, err = a.machines.BeginCreateOrUpdate(a.ctx, simulated.DefaultGroup, "m1", body(), nil)
	a.Expect(err).To(haveCode(409, "OperationNotAllowed"))
	a.Expect(a.kinds()["virtualMachines"]).To(Equal(1))
}

// TestCapacityLacks at once, or after the launch was accepted: then a failed machine and its interface are left.
func TestCapacityLacks(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.server.Exhaust("Standard_D2s_v5", "1", simulated.Exhaustion{Code: "ZonalAllocationFailed", Message: "no room"})
	_, err := a.put("m1", body())
	a.Expect(err).To(haveCode(409, "ZonalAllocationFailed"))
	a.Expect(a.kinds()).To(BeEmpty())

	a.server.Exhaust("Standard_D2s_v5", "1", simulated.Exhaustion{Code: "ZonalAllocationFailed", Message: "no room", Late: true})
	poller, err := a.put("m1", body())
	a.Expect(err).NotTo(HaveOccurred())
	a.clock.Step(create)
	_, err = poller.Poll(a.ctx)
	a.Expect(err).NotTo(HaveOccurred())
	_, err = poller.Result(a.ctx)
	a.Expect(err).To(MatchError(ContainSubstring("ZonalAllocationFailed")))
	a.Expect(a.power("m1")).To(Equal([]string{"ProvisioningState/failed/ZonalAllocationFailed"}))
	a.Expect(a.kinds()).To(Equal(map[string]int{"virtualMachines": 1, "networkInterfaces": 1}))
	a.server.Exhaust("Standard_D2s_v5", "1", simulated.Exhaustion{})
	_, err = a.machines.BeginDelete(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).NotTo(HaveOccurred())
	a.clock.Step(20 * time.Second)
	a.running("m1")
}

// TestQuotas count the cores of a family.
func TestQuotas(t *testing.T) {
	catalog := simulated.DefaultCatalog()
	catalog.Quotas = map[string]int{"standardDSv5Family": 3}
	a := newTenant(t, simulated.Options{Catalog: catalog})
	a.running("m1")
	_, err := a.put("m2", body())
	a.Expect(err).To(haveCode(409, "OperationNotAllowed"))
	a.Expect(err).To(MatchError(ContainSubstring("exceeding approved standardDSv5Family Cores quota")))
	_, err = a.machines.BeginDelete(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).NotTo(HaveOccurred())
	a.clock.Step(20 * time.Second)
	a.running("m2")
}

// TestPower is in run time status alone, and in the list of the subscription if that asks for nothing else.
func TestPower(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.running("m1")
	a.running("m2", spot(armcompute.VirtualMachineEvictionPolicyTypesDeallocate))
	a.running("m3", spot(armcompute.VirtualMachineEvictionPolicyTypesDelete))
	a.running("m4")
	_, err := a.machines.SimulateEviction(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).To(haveCode(409, "OperationNotAllowed"))
	for _, name := range []string{"m2", "m3"} {
		_, err = a.machines.SimulateEviction(a.ctx, simulated.DefaultGroup, name, nil)
		a.Expect(err).NotTo(HaveOccurred())
	}
	_, err = a.machines.BeginPowerOff(a.ctx, simulated.DefaultGroup, "m4", nil)
	a.Expect(err).NotTo(HaveOccurred())
	a.clock.Step(20 * time.Second)
	found := map[string]string{}
	pager := a.machines.NewListAllPager(&armcompute.VirtualMachinesClientListAllOptions{StatusOnly: ptr("true")})
	for pager.More() {
		page, err := pager.NextPage(a.ctx)
		a.Expect(err).NotTo(HaveOccurred())
		for _, m := range page.Value {
			a.Expect(m.Tags).To(BeEmpty())
			found[*m.Name] = *m.Properties.InstanceView.Statuses[1].Code
		}
	}
	a.Expect(found).To(Equal(map[string]string{"m1": "PowerState/running", "m2": "PowerState/deallocated", "m4": "PowerState/stopped"}))
	list := a.machines.NewListPager(simulated.DefaultGroup, nil)
	page, err := list.NextPage(a.ctx)
	a.Expect(err).NotTo(HaveOccurred())
	for _, m := range page.Value {
		a.Expect(m.Properties.InstanceView).To(BeNil())
	}
	_, err = a.machines.BeginStart(a.ctx, simulated.DefaultGroup, "m4", nil)
	a.Expect(err).NotTo(HaveOccurred())
	a.clock.Step(10 * time.Second)
	a.Expect(a.power("m4")).To(ContainElement("PowerState/running"))
}

// TestRefusals are answered before anything is created.
func TestRefusals(t *testing.T) {
	catalog := simulated.DefaultCatalog()
	catalog.Subnets = append(catalog.Subnets, simulated.Subnet{ID: simulated.DefaultSubnet + "-full", Full: true})
	a := newTenant(t, simulated.Options{Catalog: catalog})
	nic := func(vm *armcompute.VirtualMachine) *armcompute.VirtualMachineNetworkInterfaceConfigurationProperties {
		return vm.Properties.NetworkProfile.NetworkInterfaceConfigurations[0].Properties
	}
	for name, c := range map[string]struct {
		status int
		code   string
		change func(*armcompute.VirtualMachine)
	}{
		"location":  {400, "LocationNotAvailableForResourceType", func(vm *armcompute.VirtualMachine) { vm.Location = ptr("moon") }},
		"size":      {400, "InvalidParameter", func(vm *armcompute.VirtualMachine) { *vm.Properties.HardwareProfile.VMSize = "Huge" }},
		"zone":      {400, "InvalidAvailabilityZone", func(vm *armcompute.VirtualMachine) { vm.Zones = []*string{ptr("7")} }},
		"not there": {409, "SkuNotAvailable", func(vm *armcompute.VirtualMachine) { *vm.Properties.HardwareProfile.VMSize = "Standard_NC4as_T4_v3" }},
		"image":     {404, "GalleryImageNotFound", func(vm *armcompute.VirtualMachine) { *vm.Properties.StorageProfile.ImageReference.ID += "0" }},
		"plan": {400, "VMMarketplaceInvalidInput", func(vm *armcompute.VirtualMachine) {
			vm.Properties.StorageProfile.ImageReference = &armcompute.ImageReference{
				Publisher: ptr("kinvolk"), Offer: ptr("flatcar-container-linux"), SKU: ptr("stable"), Version: ptr("latest"),
			}
		}},
		"subnet":    {400, "InvalidResourceReference", func(vm *armcompute.VirtualMachine) { *nic(vm).IPConfigurations[0].Properties.Subnet.ID += "x" }},
		"addresses": {400, "SubnetIsFull", func(vm *armcompute.VirtualMachine) { *nic(vm).IPConfigurations[0].Properties.Subnet.ID += "-full" }},
		"no API":    {400, "InvalidParameter", func(vm *armcompute.VirtualMachine) { vm.Properties.NetworkProfile.NetworkAPIVersion = nil }},
		"no key":    {400, "InvalidParameter", func(vm *armcompute.VirtualMachine) { vm.Properties.OSProfile.LinuxConfiguration.SSH = nil }},
		"key path": {400, "InvalidParameter", func(vm *armcompute.VirtualMachine) {
			*vm.Properties.OSProfile.LinuxConfiguration.SSH.PublicKeys[0].Path = "/root"
		}},
		"user": {400, "InvalidParameter", func(vm *armcompute.VirtualMachine) { *vm.Properties.OSProfile.AdminUsername = "root" }},
		"custom data": {400, "InvalidParameter", func(vm *armcompute.VirtualMachine) {
			*vm.Properties.OSProfile.CustomData = strings.Repeat("AAAA", 21846)
		}},
		"small disk": {400, "InvalidParameter", func(vm *armcompute.VirtualMachine) { vm.Properties.StorageProfile.OSDisk.DiskSizeGB = ptr(int32(1)) }},
		"ephemeral": {400, "NotSupported", func(vm *armcompute.VirtualMachine) {
			vm.Properties.StorageProfile.OSDisk.DiffDiskSettings = &armcompute.DiffDiskSettings{Option: ptr(armcompute.DiffDiskOptionsLocal)}
		}},
		"eviction": {400, "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines", func(vm *armcompute.VirtualMachine) {
			vm.Properties.EvictionPolicy = ptr(armcompute.VirtualMachineEvictionPolicyTypesDelete)
		}},
		"tag": {400, "InvalidTagNameCharacters", func(vm *armcompute.VirtualMachine) { vm.Tags["a/b"] = ptr("") }},
		"encryption": {400, "InvalidResourceReference", func(vm *armcompute.VirtualMachine) {
			vm.Properties.HostGroup = &armcompute.SubResource{ID: ptr("/nowhere")}
		}},
		"not simulated": {400, "InvalidRequestContent", func(vm *armcompute.VirtualMachine) { vm.Properties.LicenseType = ptr("RHEL_BYOS") }},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.put("m1", body(c.change))
			NewWithT(t).Expect(err).To(haveCode(c.status, c.code))
		})
	}
	a.Expect(a.kinds()).To(BeEmpty())
}

// TestResourceManager refuses what no resource provider sees, and pages lists.
func TestResourceManager(t *testing.T) {
	catalog := simulated.DefaultCatalog()
	a := newTenant(t, simulated.Options{Catalog: catalog, PageSize: 2, Throttles: map[string]simulator.Throttle{
		simulated.DefaultSubscription + "/delete": {Burst: 1, RefillPerSecond: 0.2},
	}})
	for i := range 5 {
		a.running(fmt.Sprintf("m%d", i))
	}
	var names []string
	pages := 0
	for pager := a.machines.NewListPager(simulated.DefaultGroup, nil); pager.More(); pages++ {
		page, err := pager.NextPage(a.ctx)
		a.Expect(err).NotTo(HaveOccurred())
		for _, m := range page.Value {
			names = append(names, *m.Name)
		}
	}
	a.Expect(names).To(Equal([]string{"m0", "m1", "m2", "m3", "m4"}))
	a.Expect(pages).To(Equal(3))

	a.server.ChangeCatalog(func(c *simulated.Catalog) { c.Groups[0].Lock = "CanNotDelete" })
	_, err := a.machines.BeginDelete(a.ctx, simulated.DefaultGroup, "m0", nil)
	a.Expect(err).To(haveCode(409, "ScopeLocked"))
	_, err = a.machines.BeginDelete(a.ctx, simulated.DefaultGroup, "m0", nil)
	a.Expect(err).To(haveCode(429, "SubscriptionRequestsThrottled"))
	var refused struct{ Error struct{ Code string } }
	status, header := a.call(http.MethodDelete, a.id("m0")+"?api-version=1", &refused)
	a.Expect(status).To(Equal(429))
	a.Expect(header.Get("Retry-After")).To(Equal("5"))
	for path, code := range map[string]string{
		a.id("m0"): "MissingApiVersionParameter", "/subscriptions/x/resourceGroups?api-version=1": "InvalidSubscriptionId",
		"/subscriptions/00000000-0000-0000-0000-00000000000f/resourceGroups?api-version=1": "SubscriptionNotFound",
		"/subscriptions/" + simulated.DefaultSubscription +
			"/resourceGroups/none/providers/Microsoft.Compute/disks?api-version=1": "ResourceGroupNotFound",
		"/nothing?api-version=1": "InvalidResourceType",
	} {
		_, _ = a.call(http.MethodGet, path, &refused)
		a.Expect(refused.Error.Code).To(Equal(code), path)
	}
	a.server.AddFault(simulator.Fault{Action: "VirtualMachines_Get", Count: 1, Error: &simulator.APIError{Code: "AuthorizationFailed"}})
	_, err = a.machines.Get(a.ctx, simulated.DefaultGroup, "m0", nil)
	a.Expect(err).To(haveCode(403, "AuthorizationFailed"))
}
