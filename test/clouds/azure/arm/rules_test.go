package arm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	. "github.com/onsi/gomega"

	simulated "millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

type change = func(*armcompute.VirtualMachine)

func size(name string) change {
	return func(vm *armcompute.VirtualMachine) {
		vm.Properties.HardwareProfile.VMSize = ptr(armcompute.VirtualMachineSizeTypes(name))
	}
}

func image(id string) change {
	return func(vm *armcompute.VirtualMachine) { vm.Properties.StorageProfile.ImageReference.ID = &id }
}

func controller(kind armcompute.DiskControllerTypes) change {
	return func(vm *armcompute.VirtualMachine) { vm.Properties.StorageProfile.DiskControllerType = &kind }
}

// dataDisk replaces the data disk.
func dataDisk(kind armcompute.StorageAccountTypes, caching armcompute.CachingTypes, gib int32) change {
	return func(vm *armcompute.VirtualMachine) {
		d := vm.Properties.StorageProfile.DataDisks[0]
		d.ManagedDisk, d.DiskSizeGB = &armcompute.ManagedDiskParameters{StorageAccountType: &kind}, &gib
		if d.Caching = nil; caching != "" {
			d.Caching = &caching
		}
	}
}

func ultra(vm *armcompute.VirtualMachine) {
	vm.Properties.AdditionalCapabilities = &armcompute.AdditionalCapabilities{UltraSSDEnabled: ptr(true)}
}

func noZone(vm *armcompute.VirtualMachine) { vm.Zones = nil }

func osDisk(kind armcompute.StorageAccountTypes, gib int32) change {
	return func(vm *armcompute.VirtualMachine) {
		vm.Properties.StorageProfile.OSDisk.ManagedDisk = &armcompute.ManagedDiskParameters{StorageAccountType: &kind}
		vm.Properties.StorageProfile.OSDisk.DiskSizeGB = &gib
	}
}

func ephemeral(placement armcompute.DiffDiskPlacement, gib int32) change {
	return func(vm *armcompute.VirtualMachine) {
		os := vm.Properties.StorageProfile.OSDisk
		os.Caching, os.DiskSizeGB = ptr(armcompute.CachingTypesReadOnly), &gib
		os.DiffDiskSettings = &armcompute.DiffDiskSettings{Option: ptr(armcompute.DiffDiskOptionsLocal), Placement: &placement}
	}
}

func security(kind armcompute.SecurityTypes, uefi bool) change {
	return func(vm *armcompute.VirtualMachine) {
		p := &armcompute.SecurityProfile{SecurityType: &kind}
		if uefi {
			p.UefiSettings = &armcompute.UefiSettings{SecureBootEnabled: ptr(true), VTpmEnabled: ptr(true)}
		}
		vm.Properties.SecurityProfile = p
		if kind == armcompute.SecurityTypesConfidentialVM {
			vm.Properties.StorageProfile.OSDisk.ManagedDisk = &armcompute.ManagedDiskParameters{SecurityProfile: &armcompute.VMDiskSecurityProfile{
				SecurityEncryptionType: ptr(armcompute.SecurityEncryptionTypesVMGuestStateOnly),
			}}
		}
	}
}

func atHost(vm *armcompute.VirtualMachine) {
	vm.Properties.SecurityProfile = &armcompute.SecurityProfile{EncryptionAtHost: ptr(true)}
}

func spotFor(price float64) change {
	return func(vm *armcompute.VirtualMachine) {
		spot(armcompute.VirtualMachineEvictionPolicyTypesDelete)(vm)
		vm.Properties.BillingProfile = &armcompute.BillingProfile{MaxPrice: &price}
	}
}

func dataDisks(count int32) change {
	return func(vm *armcompute.VirtualMachine) {
		vm.Properties.StorageProfile.DataDisks = nil
		for i := range count {
			vm.Properties.StorageProfile.DataDisks = append(vm.Properties.StorageProfile.DataDisks, &armcompute.DataDisk{
				Lun: &i, CreateOption: ptr(armcompute.DiskCreateOptionTypesEmpty), DiskSizeGB: ptr(int32(1)),
			})
		}
	}
}

func interfaces(count int) change {
	return func(vm *armcompute.VirtualMachine) {
		list := &vm.Properties.NetworkProfile.NetworkInterfaceConfigurations
		for range count - 1 {
			other := *(*list)[0]
			properties := *other.Properties
			properties.Primary = ptr(false)
			other.Properties = &properties
			*list = append(*list, &other)
		}
	}
}

// TestCreate_RuleBroken_IsRefusedInAzuresWords for each documented rule; the README has the sources.
func TestCreate_RuleBroken_IsRefusedInAzuresWords(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	const lrs, v2, ssd = armcompute.StorageAccountTypesPremiumLRS, armcompute.StorageAccountTypesPremiumV2LRS,
		armcompute.StorageAccountTypesUltraSSDLRS
	for words, changes := range map[string][]change{
		"UltraSSD_LRS can be used only when":                           {dataDisk(ssd, "", 10)},
		"UltraSSD_LRS is not supported with caching":                   {ultra, dataDisk(ssd, "ReadOnly", 10)},
		"PremiumV2_LRS is not supported with caching":                  {dataDisk(v2, "ReadWrite", 10)},
		"PremiumV2_LRS disks can be attached only":                     {noZone, dataDisk(v2, "", 10)},
		"only with Virtual Machine in an Availability Zone":            {ultra, noZone},
		"size Standard_B2ms must support it":                           {ultra, size("Standard_B2ms")},
		"'PremiumV2_LRS' is supported only for data disks":             {osDisk(v2, 64)},
		"'UltraSSD_LRS' is supported only for data disks":              {ultra, osDisk(ssd, 64)},
		"'osDisk.diskSizeGB' is out of range":                          {osDisk(lrs, 4096)},
		"'dataDisk.diskSizeGB' is out of range":                        {dataDisk(lrs, "", 65536)},
		"Disk caching is not supported for disks of 4 TiB":             {dataDisk(lrs, "ReadOnly", 4096)},
		"attached to a VM of this size is 4":                           {dataDisks(5)},
		"attached to a VM of this size is 8":                           {size("Standard_D4s_v5"), dataDisks(64)},
		"network interfaces is 3 and the maximum allowed is 2":         {interfaces(3)},
		"does not support the storage account type Premium":            {size("Standard_A2_v2"), image(simulated.ImageGeneration1), dataDisk(lrs, "", 10)},
		"cannot have an ephemeral OS disk":                             {ephemeral("ResourceDisk", 30)},
		"greater than 150 GB is not allowed":                           {size("Standard_D4ds_v5"), ephemeral("ResourceDisk", 2048)},
		"greater than 100 GB is not allowed":                           {size("Standard_D4ds_v5"), ephemeral("CacheDisk", 128)},
		"type 'CacheDisk' is not supported":                            {size("Standard_D4ads_v5"), ephemeral("CacheDisk", 30)},
		"type 'NvmeDisk' is not supported":                             {size("Standard_D4ds_v5"), ephemeral("NvmeDisk", 30)},
		"only supports a CPU Architecture of 'Arm64'":                  {size("Standard_D2pds_v5")},
		"only supports a CPU Architecture of 'x64'":                    {image(simulated.ImageArm64)},
		"cannot boot Hypervisor Generation '1'":                        {size("Standard_D4s_v6"), image(simulated.ImageGeneration1)},
		"cannot boot Hypervisor Generation '2'":                        {size("Standard_A2_v2")},
		"'Standard_D2s_v5' cannot boot with DiskControllerType 'NVMe'": {controller("NVMe")},
		"'Standard_D4s_v6' cannot boot with DiskControllerType 'SCSI'": {size("Standard_D4s_v6"), controller("SCSI")},
		"'Standard_D8s_v6' cannot boot with OS image":                  {size("Standard_D8s_v6"), image(simulated.ImageWithoutControllers)},
		"'Standard_E4bds_v5' cannot boot with OS image":                {size("Standard_E4bds_v5"), controller("NVMe"), image(simulated.ImageWithoutControllers)},
		"'diskControllerType' is invalid":                              {controller("IDE")},
		"'Standard_D4s_v5' is not supported for creation":              {size("Standard_D4s_v5"), security("ConfidentialVM", true)},
		"'Standard_DC2as_v5' is not supported for creation":            {size("Standard_DC2as_v5")},
		"'Standard_EC4as_v5' is not supported for creation":            {size("Standard_EC4as_v5"), security("TrustedLaunch", true)},
		"'Standard_DC4es_v5' is not supported for creation":            {size("Standard_DC4es_v5"), security("Standard", false)},
		"Use of ConfidentialVM setting is not supported":               {size("Standard_DC2as_v5"), security("ConfidentialVM", true)},
		"needs osDisk.managedDisk.securityProfile":                     {size("Standard_DC2as_v5"), image(simulated.ImageConfidential), security("ConfidentialVM", false)},
		"Use of TrustedLaunch setting is not supported":                {image(simulated.ImageWithoutControllers), security("TrustedLaunch", true)},
		"'Standard_M32ms' is not supported for creation":               {size("Standard_M32ms"), security("TrustedLaunch", true)},
		"parameter securityProfile.securityType is invalid":            {security("Standard", false)},
		"'Microsoft.Compute/EncryptionAtHost' feature is not enabled":  {atHost},
		"lower than the current spot price":                            {spotFor(0.00001)},
		"Standard_B2ms does not support Azure Spot":                    {size("Standard_B2ms"), spotFor(-1)},
	} {
		_, err := a.put("m1", body(changes...))
		a.Expect(err).To(MatchError(ContainSubstring(words)), words)
	}
	a.Expect(a.kinds()).To(BeEmpty())
	for _, changes := range [][]change{
		{ultra, dataDisk(ssd, "None", 65536)}, {dataDisk(v2, "", 65536)}, {dataDisk(lrs, "None", 32767)}, {dataDisks(4)}, {interfaces(2)},
		{size("Standard_D4ds_v5"), ephemeral("ResourceDisk", 150)}, {size("Standard_D4ds_v6"), ephemeral("NvmeDisk", 220)},
		{size("Standard_E4bds_v5"), controller("NVMe")}, {size("Standard_D4s_v6")}, {security("TrustedLaunch", true)}, {spotFor(0.02)},
		{size("Standard_DC2as_v5"), image(simulated.ImageConfidential), security("ConfidentialVM", true)},
		{size("Standard_A2_v2"), image(simulated.ImageGeneration1)}, {size("Standard_D2pds_v5"), image(simulated.ImageArm64)},
	} {
		_, err := a.put("m1", body(changes...))
		a.Expect(err).NotTo(HaveOccurred())
		a.Expect(a.server.Vanish(a.id("m1"))).To(Succeed())
	}
}

// TestCreate_FieldNotInModel_IsRefused: what Azure's API definition does not have, and values of another type.
func TestCreate_FieldNotInModel_IsRefused(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	for given, want := range map[string]string{
		`{"location":"westeurope","properties":{"storageProfile":{"diskController":"NVMe"}}}`: "storageProfile.diskController",
		`{"location":"westeurope","nodeSize":"x"}`:                                            "nodeSize",
		`{"location":"westeurope","properties":{"priority":7}}`:                               "deserialized",
	} {
		request, err := http.NewRequestWithContext(a.ctx, http.MethodPut, a.url+a.id("m1")+"?api-version=2025-11-01", strings.NewReader(given))
		a.Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Authorization", "Bearer a-user")
		response, err := http.DefaultClient.Do(request)
		a.Expect(err).NotTo(HaveOccurred())
		text := new(strings.Builder)
		a.Expect(response.Write(text)).To(Succeed())
		a.Expect(response.Body.Close()).To(Succeed())
		a.Expect(response.StatusCode).To(Equal(http.StatusBadRequest))
		a.Expect(text.String()).To(ContainSubstring(want))
	}
}

// TestDelete_LateFailure_KeepsTheMachine with the error in the operation; a later deletion succeeds.
func TestDelete_LateFailure_KeepsTheMachine(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	a.running("m1")
	a.server.AddFault(simulator.Fault{
		Action: "VirtualMachines_Delete", Count: 1, LaunchFailure: &simulator.Failure{Code: "OperationNotAllowed", Message: "Cannot delete VM m1."},
	})
	for _, fails := range []bool{true, false} {
		poller, err := a.machines.BeginDelete(a.ctx, simulated.DefaultGroup, "m1", nil)
		a.Expect(err).NotTo(HaveOccurred())
		a.clock.Step(create)
		_, err = poller.Poll(a.ctx)
		a.Expect(err).NotTo(HaveOccurred())
		_, err = poller.Result(a.ctx)
		a.Expect(err != nil).To(Equal(fails), "%v", err)
		if fails {
			a.Expect(err).To(MatchError(ContainSubstring("Cannot delete VM m1.")))
			a.Expect(a.power("m1")).To(Equal([]string{"ProvisioningState/failed/OperationNotAllowed", "PowerState/running"}))
		}
	}
	a.Expect(a.kinds()).To(Equal(map[string]int{"disks": 1}), "the data disk has no deleteOption")
}

// TestList_Lag_ReadsByNameAreCurrent: lists have a machine and its parts later than reads by name.
func TestList_Lag_ReadsByNameAreCurrent(t *testing.T) {
	a := newTenant(t, simulated.Options{})
	delays := simulated.Delays{Create: create, List: create}
	a.server.SetDelays(delays)
	_, err := a.put("m1", body())
	a.Expect(err).NotTo(HaveOccurred())
	listed := func() int {
		page, err := a.machines.NewListPager(simulated.DefaultGroup, nil).NextPage(a.ctx)
		a.Expect(err).NotTo(HaveOccurred())
		return len(page.Value)
	}
	a.Expect(listed()).To(Equal(0))
	_, err = a.machines.Get(a.ctx, simulated.DefaultGroup, "m1", nil)
	a.Expect(err).NotTo(HaveOccurred())
	a.clock.Step(create)
	a.Expect(listed()).To(Equal(1))
}
