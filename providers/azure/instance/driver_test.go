package instance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
)

// TestALife: one call creates all, which is marked from its beginning; one ends all.
func TestALife(t *testing.T) {
	f := newFixture(t, arm.Options{})
	l := launch("m1", func(s *infrav1.AzureMachineSpec) {
		s.Tags = map[string]infrav1.TagValue{"team": "blue"}
		s.DataDisks = []infrav1.DataDisk{{LUN: ptr(int32(0)), SizeGiB: 10}}
		s.PublicIP = ptr(true)
	})
	h := f.accepted(l)
	f.Expect(h.ProviderID).To(Equal("azure:///subscriptions/" + arm.DefaultSubscription +
		"/resourceGroups/nodes/providers/Microsoft.Compute/virtualMachines/m1"))
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstancePending))
	f.clock.Step(creation)
	f.Expect(f.calls()["VirtualMachines_CreateOrUpdate"]).To(Equal(1))
	f.Expect(f.kinds()).To(Equal(map[string]int{"virtualMachines": 1, "networkInterfaces": 1, "publicIPAddresses": 1, "disks": 2}))
	for _, r := range f.cloud.Resources() {
		f.Expect(r.Tags).To(Equal(map[string]string{
			"team": "blue", instance.TagOwnerUID: "uid-of-m1", instance.TagMachine: "default/m1", instance.TagCluster: "default/green",
			instance.TagToken: "token-of-m1", instance.TagLineage: "cluster_epoch_1", "kubernetes.io_cluster_green": "owned",
		}), r.ID)
	}
	want := driver.Instance{
		ID: "m1", Name: "m1", ProviderID: h.ProviderID, Token: l.Token, OwnerUID: l.OwnerUID, Owner: l.Owner, Lineage: l.Lineage,
		State: driverv1.InstanceRunning, LaunchTime: f.clock.Now().Add(-creation), FailureDomain: "1", InstanceType: "Standard_D2s_v5",
		Addresses: []clusterv1.MachineAddress{
			{Type: clusterv1.MachineInternalIP, Address: "10.1.0.4"}, {Type: clusterv1.MachineExternalIP, Address: "203.0.0.2"},
			{Type: clusterv1.MachineHostName, Address: "m1"},
		},
	}
	f.Expect(f.observe(h)).To(Equal(driver.Answer[driver.Instance]{Value: want}))
	f.Expect(f.list()).To(Equal([]driver.Instance{want}))
	f.Expect(f.Mark(h)).To(ContainSubstring(instance.TagOwnerUID + "=uid-of-m1"))

	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceTerminating))
	f.clock.Step(deletion)
	f.class(f.observe(h).Err, driver.ClassNotFound)
	f.Expect(f.kinds()).To(BeEmpty())
	f.Expect(f.calls()["VirtualMachines_Delete"]).To(Equal(1))
	f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
	f.Expect(fmt.Sprint(f.cloud.Calls())).NotTo(ContainSubstring("a secret"))
}

// TestANameThatIsTaken is a conflict, whatever has it; nothing of it is changed.
func TestANameThatIsTaken(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.running(launch("m1"))
	_, err := f.Create(f.ctx, launch("m1"))
	f.class(err, driver.ClassConflict)
	other := launch("m1")
	other.OwnerUID, other.Owner = "another", "other/m1"
	_, err = f.Create(f.ctx, other)
	f.class(err, driver.ClassConflict)
	f.Expect(handle(other).Owns(f.observe(handle(other)).Value)).To(BeFalse())
	f.Expect(f.kinds()["virtualMachines"]).To(Equal(1))
}

// TestWhatASpecMayAskFor gets to Azure as it takes it.
func TestWhatASpecMayAskFor(t *testing.T) {
	others := "/subscriptions/" + arm.DefaultSubscription + "/resourceGroups/Network/providers/"
	catalog := arm.DefaultCatalog()
	for _, id := range []string{
		"Microsoft.Network/networkSecurityGroups/g", "Microsoft.Compute/diskEncryptionSets/s", "Microsoft.Compute/capacityReservationGroups/c",
		"Microsoft.Compute/availabilitySets/a", "Microsoft.Compute/proximityPlacementGroups/p", "Microsoft.Compute/hostGroups/h",
		"Microsoft.Compute/virtualMachineScaleSets/v", "Microsoft.ManagedIdentity/userAssignedIdentities/i",
	} {
		catalog.Others = append(catalog.Others, others+id)
	}
	catalog.Features = []string{arm.FeatureEncryptionAtHost, arm.FeatureStandardSecurity}
	f := newFixture(t, arm.Options{Catalog: catalog})
	for name, change := range map[string]func(*infrav1.AzureMachineSpec){
		"no-zone": func(s *infrav1.AzureMachineSpec) { s.Zones = nil },
		"network": func(s *infrav1.AzureMachineSpec) {
			s.NetworkSecurityGroupID, s.AcceleratedNetworking, s.IPForwarding = others+"Microsoft.Network/networkSecurityGroups/g", ptr(true),
				ptr(true)
		},
		"disks": func(s *infrav1.AzureMachineSpec) {
			set := others + "Microsoft.Compute/diskEncryptionSets/s"
			s.OSDisk = &infrav1.OSDisk{SizeGiB: ptr(int32(64)), StorageAccountType: "Premium_LRS", Caching: "ReadWrite", DiskEncryptionSetID: set}
			s.DataDisks = []infrav1.DataDisk{{LUN: ptr(int32(3)), SizeGiB: 100, StorageAccountType: "UltraSSD_LRS", Caching: "None",
				DiskEncryptionSetID: set}}
			s.UltraSSD = ptr(true)
		},
		"ephemeral": func(s *infrav1.AzureMachineSpec) {
			s.VMSize = "Standard_D4ds_v5"
			s.OSDisk = &infrav1.OSDisk{Ephemeral: &infrav1.EphemeralDisk{Placement: "ResourceDisk"}}
			s.Spot = &infrav1.Spot{MaxPrice: "0.05", EvictionPolicy: "Delete"}
		},
		"reserved": func(s *infrav1.AzureMachineSpec) {
			s.CapacityReservationGroupID = others + "Microsoft.Compute/capacityReservationGroups/c"
		},
		"set": func(s *infrav1.AzureMachineSpec) {
			s.Zones, s.Placement = nil, &infrav1.Placement{AvailabilitySetID: others + "Microsoft.Compute/availabilitySets/a"}
		},
		"placed": func(s *infrav1.AzureMachineSpec) {
			s.Placement = &infrav1.Placement{
				ProximityPlacementGroupID: others + "Microsoft.Compute/proximityPlacementGroups/p",
				HostGroupID:               others + "Microsoft.Compute/hostGroups/h",
				ScaleSetID:                others + "Microsoft.Compute/virtualMachineScaleSets/v",
			}
		},
		"confidential": func(s *infrav1.AzureMachineSpec) {
			s.VMSize, s.Image.ID = "Standard_DC2as_v5", arm.ImageConfidential
			s.SecurityProfile = &infrav1.SecurityProfile{Type: "ConfidentialVM", SecureBoot: ptr(true), VTPM: ptr(true), EncryptionAtHost: ptr(true)}
			s.BootDiagnostics, s.SSHPublicKey = ptr(true), "ssh-rsa AAAA me"
			s.UserAssignedIdentities = []string{others + "Microsoft.ManagedIdentity/userAssignedIdentities/i"}
		},
		"standard": func(s *infrav1.AzureMachineSpec) { s.SecurityProfile = &infrav1.SecurityProfile{Type: "Standard"} },
		"trusted": func(s *infrav1.AzureMachineSpec) {
			s.SecurityProfile = &infrav1.SecurityProfile{Type: "TrustedLaunch", SecureBoot: ptr(true), VTPM: ptr(true)}
		},
		"nvme":    func(s *infrav1.AzureMachineSpec) { s.VMSize, s.DiskControllerType = "Standard_E4bds_v5", "NVMe" },
		"nvme-v6": func(s *infrav1.AzureMachineSpec) { s.VMSize = "Standard_D4s_v6" },
		"arm64":   func(s *infrav1.AzureMachineSpec) { s.VMSize, s.Image.ID = "Standard_D2pds_v5", arm.ImageArm64 },
		"marketplace": func(s *infrav1.AzureMachineSpec) {
			s.Image = infrav1.Image{
				Marketplace: &infrav1.MarketplaceImage{Publisher: "kinvolk", Offer: "flatcar-container-linux", SKU: "stable", Version: "latest"},
				Plan:        &infrav1.Plan{Publisher: "kinvolk", Product: "flatcar-container-linux", Name: "stable"},
			}
		},
		"community": func(s *infrav1.AzureMachineSpec) {
			s.Image = infrav1.Image{CommunityGalleryImageID: "/communityGalleries/millwright-0001/images/node/versions/1.36.3"}
		},
		"shared": func(s *infrav1.AzureMachineSpec) {
			s.Image = infrav1.Image{SharedGalleryImageID: "/sharedGalleries/millwright-0002/images/node/versions/1.36.3"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.Create(f.ctx, launch(name, change))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		})
	}
	f.clock.Step(creation)
	for _, i := range f.list() {
		f.Expect(i.State).To(Equal(driverv1.InstanceRunning), i.Name)
		f.Expect(i.Interruptible).To(Equal(i.Name == "ephemeral"))
	}
}

func TestPlaces(t *testing.T) {
	f := newFixture(t, arm.Options{})
	fallback := func(s *infrav1.AzureMachineSpec) { s.FallbackVMSizes = []string{"Standard_E2s_v5"} }
	terms := ""
	places := func(domain string, changes ...func(*infrav1.AzureMachineSpec)) []string {
		l := launch("m1", changes...)
		l.FailureDomain = domain
		found, err := f.Places(f.ctx, l)
		f.Expect(err).NotTo(HaveOccurred())
		var out []string
		for _, c := range found {
			f.Expect(c.Terms).To(Equal(terms))
			out = append(out, fmt.Sprintf("%d %s %s %s%s", c.Rank, c.ID, c.FailureDomain, c.InstanceType, c.Market))
		}
		return out
	}
	f.Expect(places("", fallback)).To(Equal([]string{
		"0 westeurope-1 1 Standard_D2s_v5",
		"0 westeurope-2 2 Standard_D2s_v5",
		"1 westeurope-1 1 Standard_E2s_v5",
		"1 westeurope-2 2 Standard_E2s_v5",
	}))
	f.Expect(places("2")).To(Equal([]string{"0 westeurope-2 2 Standard_D2s_v5"}))
	f.Expect(places("", func(s *infrav1.AzureMachineSpec) { s.Zones, s.Spot = nil, &infrav1.Spot{} })).
		To(Equal([]string{"0 westeurope  Standard_D2s_v5spot"}))
	terms = "for 0.05 USD an hour at most"
	f.Expect(places("2", func(s *infrav1.AzureMachineSpec) { s.Spot = &infrav1.Spot{MaxPrice: "0.05"} })).
		To(HaveLen(1), "a price that is too low concerns no other request")
	l := launch("m1")
	l.FailureDomain = "3"
	_, err := f.Places(f.ctx, l)
	f.class(err, driver.ClassTerminal)
	f.Expect(f.calls()).To(BeEmpty(), "nothing is asked")
}

// TestPowerIsRead: a machine that is deallocated, stopped or taken back does not run. Azure #7 of the lessons: CAPZ read provisioning
// states alone.
func TestPowerIsRead(t *testing.T) {
	f := newFixture(t, arm.Options{})
	spot := func(s *infrav1.AzureMachineSpec) { s.Spot = &infrav1.Spot{EvictionPolicy: "Deallocate"} }
	taken, off := f.running(launch("taken", spot)), f.running(launch("off"))
	f.running(launch("on"))
	f.Expect(f.cloud.Evict("/subscriptions/" + arm.DefaultSubscription +
		"/resourceGroups/Nodes/providers/Microsoft.Compute/virtualMachines/taken")).
		To(Succeed())
	f.Expect(f.cloud.PowerOff("/subscriptions/" + arm.DefaultSubscription +
		"/resourceGroups/Nodes/providers/Microsoft.Compute/virtualMachines/off")).
		To(Succeed())
	f.clock.Step(10 * time.Second)
	statuses, err := f.ListStatus(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(statuses).To(Equal(map[string]driver.Status{
		taken.ProviderID: {State: driverv1.InstanceStopped, StateCode: "PowerState/deallocated", Interrupted: true, AsOf: f.clock.Now()},
		off.ProviderID:   {State: driverv1.InstanceStopped, StateCode: "PowerState/stopped", AsOf: f.clock.Now()},
	}))
	for _, i := range f.list() {
		i = i.With(statuses[i.ProviderID])
		f.Expect(i.State == driverv1.InstanceRunning).To(Equal(i.Name == "on"), i.Name)
		f.Expect(i.Interrupted).To(Equal(i.Name == "taken"), i.Name)
	}
	f.Expect(f.observe(taken).Value).To(And(HaveField("State", driverv1.InstanceStopped), HaveField("Interrupted", true)))
	f.Expect(f.observe(off).Value).To(And(HaveField("State", driverv1.InstanceStopped), HaveField("Interrupted", false)))
}

// TestAMachineOfTheSameNameIsNotTheOneThatWasTakenBack: another attempt has the provider ID of the one before.
func TestAMachineOfTheSameNameIsNotTheOneThatWasTakenBack(t *testing.T) {
	f := newFixture(t, arm.Options{})
	l := launch("m1", func(s *infrav1.AzureMachineSpec) { s.Spot = &infrav1.Spot{EvictionPolicy: "Deallocate"} })
	h := f.running(l)
	f.Expect(f.cloud.Evict(h.ProviderID[len("azure://"):])).To(Succeed())
	f.clock.Step(10 * time.Second)
	statuses, err := f.ListStatus(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(statuses).To(HaveKey(h.ProviderID))
	f.deleted(h)
	f.clock.Step(time.Second)
	f.running(l)
	f.Expect(f.list()[0].With(statuses[h.ProviderID])).To(And(HaveField("State", driverv1.InstanceRunning), HaveField("Interrupted", false)))
}

// TestListsHavePages, and nothing of others.
func TestListsHavePages(t *testing.T) {
	f := newFixture(t, arm.Options{PageSize: 2})
	for i := range 5 {
		f.accepted(launch(fmt.Sprintf("m%d", i)))
	}
	f.clock.Step(creation)
	f.Expect(f.list()).To(HaveLen(5))
	for _, i := range f.list() {
		f.Expect(i.Addresses).To(HaveLen(2), i.Name)
	}
	before := f.calls()
	f.list()
	after := f.calls()
	f.Expect(after["VirtualMachines_List"] - before["VirtualMachines_List"]).To(Equal(3))
	f.Expect(after["NetworkInterfaces_List"] - before["NetworkInterfaces_List"]).To(Equal(3))
	f.Expect(after["PublicIPAddresses_List"]).To(BeZero(), "there are none")
	f.Expect(after["VirtualMachines_Get"]).To(BeZero(), "none for each machine")
}

// TestSize: what a Node of a template has.
func TestSize(t *testing.T) {
	f := newFixture(t, arm.Options{})
	template := func(size string) *infrav1.AzureMachineTemplate {
		return &infrav1.AzureMachineTemplate{Spec: infrav1.AzureMachineTemplateSpec{Template: infrav1.AzureMachineTemplateResource{
			Spec: spec(func(s *infrav1.AzureMachineSpec) { s.VMSize, s.OSDisk = size, &infrav1.OSDisk{SizeGiB: ptr(int32(64))} }),
		}}}
	}
	size, err := f.Size(f.ctx, template("standard_nc4as_t4_V3"))
	f.Expect(err).NotTo(HaveOccurred())
	text := ""
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "nvidia.com/gpu"} {
		q := size.Capacity[name]
		text += q.String() + " "
	}
	f.Expect(text).To(Equal("4 28Gi 64Gi 1 "))
	size, err = f.Size(f.ctx, template("Standard_D2pds_v5"))
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(size.NodeInfo).To(Equal(driverv1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"}))
	f.Expect(f.calls()["ResourceSkus_List"]).To(Equal(1), "one list for all sizes")
	_, err = f.Size(f.ctx, template("Huge"))
	f.class(err, driver.ClassTerminal)
}

func ptr[T any](v T) *T { return &v }

// TestNamesInDifferentCase are the same resource group.
func TestNamesInDifferentCase(t *testing.T) {
	f := newFixture(t, arm.Options{})
	l := launch("m1", func(s *infrav1.AzureMachineSpec) { s.ResourceGroup = strings.ToUpper(arm.DefaultGroup) })
	f.Expect(f.Scope(l.Object)).To(Equal(scope))
	l = launch("m1", func(s *infrav1.AzureMachineSpec) {
		s.ResourceGroup = "/subscriptions/" + arm.DefaultSubscription + "/resourcegroups/" + arm.DefaultGroup + "/"
		s.Location, s.Zones = "(Europe) West Europe", []string{"westeurope-1"}
	})
	f.Expect(f.Scope(l.Object)).To(Equal(scope))
	f.running(l)
	f.Expect(f.LimitScope(scope)).To(Equal(arm.DefaultSubscription))
}
