package instance_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
)

// actions are those that Azure asks for, by operation: https://learn.microsoft.com/azure/role-based-access-control/permissions/compute. A
// launch needs those of all that it makes and refers to.
var actions = map[string][]string{
	"VirtualMachines_CreateOrUpdate": {
		"Microsoft.Compute/virtualMachines/write",
		"Microsoft.Compute/disks/write",
		"Microsoft.Compute/images/read",
		"Microsoft.Compute/galleries/images/versions/read",
		"Microsoft.Network/networkInterfaces/write",
		"Microsoft.Network/networkInterfaces/join/action",
		"Microsoft.Network/publicIPAddresses/write",
		"Microsoft.Network/publicIPAddresses/join/action",
		"Microsoft.Network/virtualNetworks/subnets/join/action",
		"Microsoft.Network/networkSecurityGroups/join/action",
		"Microsoft.ManagedIdentity/userAssignedIdentities/assign/action",
	},
	"VirtualMachines_Get": {"Microsoft.Compute/virtualMachines/read"}, "VirtualMachines_List": {"Microsoft.Compute/virtualMachines/read"},
	"VirtualMachines_ListAll":      {"Microsoft.Compute/virtualMachines/read"},
	"VirtualMachines_InstanceView": {"Microsoft.Compute/virtualMachines/instanceView/read"},
	"VirtualMachines_Update":       {"Microsoft.Compute/virtualMachines/write"}, "VirtualMachines_Delete": {"Microsoft.Compute/virtualMachines/delete"},
	"NetworkInterfaces_CreateOrUpdate": {"Microsoft.Network/networkInterfaces/write", "Microsoft.Network/virtualNetworks/subnets/join/action"},
	"NetworkInterfaces_Get":            {"Microsoft.Network/networkInterfaces/read"}, "NetworkInterfaces_List": {"Microsoft.Network/networkInterfaces/read"},
	"NetworkInterfaces_UpdateTags": {"Microsoft.Network/networkInterfaces/write"}, "NetworkInterfaces_Delete": {"Microsoft.Network/networkInterfaces/delete"},
	"PublicIPAddresses_List":       {"Microsoft.Network/publicIPAddresses/read"},
	"PublicIPAddresses_UpdateTags": {"Microsoft.Network/publicIPAddresses/write"}, "PublicIPAddresses_Delete": {"Microsoft.Network/publicIPAddresses/delete"},
	"Disks_List": {"Microsoft.Compute/disks/read"}, "Disks_UpdateTags": {"Microsoft.Compute/disks/write"}, "Disks_Delete": {"Microsoft.Compute/disks/delete"},
	"GalleryImageVersions_Get": {"Microsoft.Compute/galleries/images/versions/read"}, "Images_Get": {"Microsoft.Compute/images/read"},
	"Disks_Get":         {"Microsoft.Compute/disks/read"},
	"ResourceSkus_List": {"Microsoft.Compute/skus/read"},
	"Operations_Get": {
		"Microsoft.Compute/locations/operations/read", "Microsoft.Compute/locations/diskOperations/read",
		"Microsoft.Network/locations/operations/read",
	},
}

// unseen are operations that this test does not provoke: what goes with a machine is left by Azure's failures alone.
var unseen = []string{"PublicIPAddresses_Delete", "Disks_Delete", "Disks_Get", "Images_Get", "Operations_Get"}

// ofSubscription are the operations on a subscription as a whole, which a role in resource groups does not allow.
var ofSubscription = []string{"VirtualMachines_ListAll", "ResourceSkus_List", "Operations_Get"}

// TestSampleRoles grant what the calls need that the driver makes in a life with everything, and nothing else; in the whole subscription
// nothing but reads.
func TestSampleRoles(t *testing.T) {
	f := newFixture(t, arm.Options{RefusedLaunchesLeaveInterfaces: true})
	h := f.running(launch("m1", func(s *infrav1.AzureMachineSpec) { s.PublicIP = ptr(true) }))
	f.running(launch("m2", static("10.1.0.50")))
	_, err := f.ListStatus(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.Remark(f.ctx, scope, []driver.Handle{h}, "other_epoch_1")).To(Equal([]error{nil}))
	template := &infrav1.AzureMachineTemplate{}
	template.Spec.Template.Spec = spec()
	_, err = f.Size(f.ctx, template)
	f.Expect(err).NotTo(HaveOccurred())
	f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{Code: "AllocationFailed", Message: "no room"})
	refused := launch("m3")
	_, err = f.Create(f.ctx, refused)
	f.Expect(err).To(HaveOccurred())
	f.cleaned(handle(refused))
	f.cloud.Exhaust("Standard_D2s_v5", "1", arm.Exhaustion{Code: "AllocationFailed", Message: "no room", Late: true})
	f.running(launch("m4"))
	f.list()
	f.deleted(h)

	seen := slices.Concat(slices.Collect(maps.Keys(f.calls())), unseen)
	needed := map[bool]map[string]bool{false: {}, true: {}}
	for _, operation := range seen {
		f.Expect(actions).To(HaveKey(operation), "which actions does it need?")
		for _, a := range actions[operation] {
			needed[slices.Contains(ofSubscription, operation)][a] = true
		}
	}
	f.Expect(seen).To(ConsistOf(slices.Collect(maps.Keys(actions))), "every operation of the table is called")
	for file, wide := range map[string]bool{"role.json": false, "role-subscription.json": true} {
		text, err := os.ReadFile("../../../config/samples/azure/" + file)
		f.Expect(err).NotTo(HaveOccurred())
		var role struct{ Actions []string }
		f.Expect(json.Unmarshal(text, &role)).To(Succeed())
		f.Expect(role.Actions).To(ConsistOf(slices.Collect(maps.Keys(needed[wide]))), file)
		f.Expect(wide && slices.ContainsFunc(role.Actions, func(a string) bool { return !strings.HasSuffix(a, "/read") })).To(BeFalse())
	}
}
