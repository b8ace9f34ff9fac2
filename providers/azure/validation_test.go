package main

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
)

const others = "/subscriptions/" + arm.DefaultSubscription + "/resourceGroups/Network/providers/"

func validSpec() infrav1.AzureMachineSpec {
	return infrav1.AzureMachineSpec{
		SubscriptionID: arm.DefaultSubscription, ResourceGroup: arm.DefaultGroup, Location: arm.DefaultLocation, Zones: []string{"1", "2"},
		VMSize: "Standard_D2s_v5", Image: infrav1.Image{ID: arm.DefaultImage}, SubnetID: arm.DefaultSubnet,
	}
}

func ptr[T any](v T) *T { return &v }

// fullSpec has a value in every field.
func fullSpec() infrav1.AzureMachineSpec {
	s := validSpec()
	s.IdentityRef = &driverv1.IdentityReference{Name: "team-a"}
	s.FallbackVMSizes = []string{"Standard_E2s_v5"}
	s.NetworkSecurityGroupID = others + "Microsoft.Network/networkSecurityGroups/g"
	s.AcceleratedNetworking, s.IPForwarding, s.PublicIP, s.BootDiagnostics, s.UltraSSD = ptr(true), ptr(true), ptr(true), ptr(true), ptr(true)
	s.IPv6 = ptr(true)
	s.ExtraInterfaces = []infrav1.NetworkInterface{{SubnetID: arm.DefaultSubnet, IPForwarding: ptr(true)}}
	s.OSDisk = &infrav1.OSDisk{SizeGiB: ptr(int32(64)), StorageAccountType: "Premium_LRS"}
	s.DataDisks = []infrav1.DataDisk{{LUN: ptr(int32(0)), SizeGiB: 10}}
	s.Tags = map[string]infrav1.TagValue{"team": "blue"}
	s.Spot = &infrav1.Spot{MaxPrice: "0.05"}
	s.UserAssignedIdentities = []string{others + "Microsoft.ManagedIdentity/userAssignedIdentities/i"}
	s.SecurityProfile = &infrav1.SecurityProfile{Type: "TrustedLaunch", VTPM: ptr(true)}
	s.Placement = &infrav1.Placement{ProximityPlacementGroupID: others + "Microsoft.Compute/proximityPlacementGroups/p"}
	s.SSHPublicKey = "ssh-ed25519 AAAA me@home"
	s.DiskControllerType = "SCSI"
	s.LaunchTimeoutSeconds, s.UserDataCompression = ptr(int32(600)), "None"
	return s
}

func unowned(spec infrav1.AzureMachineSpec) *infrav1.AzureMachine {
	return &infrav1.AzureMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "m-"}, Spec: spec}
}

// TestSpecsThatAreRefused by the API server, so that Azure is never called.
func TestSpecsThatAreRefused(t *testing.T) {
	NewWithT(t).Expect(c.Create(t.Context(), unowned(fullSpec()), client.DryRunAll)).To(Succeed())
	type S = infrav1.AzureMachineSpec
	for message, change := range map[string]func(*S){
		"spec.subscriptionID in body should match":         func(s *S) { s.SubscriptionID = strings.Repeat("../", 12) },
		"spec.resourceGroup in body should match":          func(s *S) { s.ResourceGroup = "a/b" },
		"spec.location in body should match":               func(s *S) { s.Location = "europe/west" },
		"spec.zones[0] in body should match":               func(s *S) { s.Zones = []string{"a"} },
		"spec.vmSize: Required":                            func(s *S) { s.VMSize = "" },
		"remove it from fallbackVMSizes":                   func(s *S) { s.FallbackVMSizes = []string{s.VMSize} },
		"give exactly one of id":                           func(s *S) { s.Image.SharedGalleryImageID = "/sharedGalleries/a/images/b/versions/1.0.0" },
		"spec.image.id in body should match":               func(s *S) { s.Image.ID = "ubuntu" },
		"spec.subnetID in body should match":               func(s *S) { s.SubnetID = "workers" },
		"spec.privateIPAddress in body should match":       func(s *S) { s.PublicIP, s.PrivateIPAddress = nil, "10.0.0.256" },
		"remove privateIPAddress or publicIP":              func(s *S) { s.PrivateIPAddress = "10.0.0.5" },
		"spec.extraInterfaces[0].subnetID":                 func(s *S) { s.ExtraInterfaces[0].SubnetID = "workers" },
		"spec.networkSecurityGroupID in body should match": func(s *S) { s.NetworkSecurityGroupID += "/../x" },
		"has caching ReadOnly":                             func(s *S) { s.OSDisk.Ephemeral, s.OSDisk.Caching = &infrav1.EphemeralDisk{}, "None" },
		"set spot.evictionPolicy to Delete": func(s *S) {
			s.OSDisk, s.Spot.EvictionPolicy = &infrav1.OSDisk{Ephemeral: &infrav1.EphemeralDisk{}}, "Deallocate"
		},
		"spec.dataDisks[0].lun":              func(s *S) { s.DataDisks[0].LUN = ptr(int32(64)) },
		"spec.dataDisks[1]: Duplicate value": func(s *S) { s.DataDisks = append(s.DataDisks, s.DataDisks[0]) },
		"are set by the provider":            func(s *S) { s.Tags["Infrastructure.Millwright.dev_owner-uid"] = "me" },
		"differ in case only":                func(s *S) { s.Tags["Team"] = "red" },
		"and no space at its ends":           func(s *S) { s.Tags["a/b"] = "" },
		"maxPrice must be more than 0":       func(s *S) { s.Spot.MaxPrice = "0.0" },
		"run in no capacity reservation": func(s *S) {
			s.CapacityReservationGroupID = others + "Microsoft.Compute/capacityReservationGroups/c"
		},
		"secureBoot and vTPM need a type": func(s *S) { s.SecurityProfile.Type = "" },
		"needs a virtual TPM":             func(s *S) { s.SecurityProfile.Type, s.SecurityProfile.VTPM = "ConfidentialVM", nil },
		"is in an availability set or in a zone": func(s *S) {
			s.Placement.AvailabilitySetID, s.Spot = others+"Microsoft.Compute/availabilitySets/a", nil
		},
		"providerID has the form that Nodes get": func(s *S) {
			s.ProviderID = "azure:///subscriptions/s/resourceGroups/Nodes/providers/Microsoft.Compute/virtualMachines/x"
		},
		"begins with another region than location": func(s *S) { s.Location, s.Zones = "West Europe", []string{"northeurope-1"} },
		"in another subscription than subscriptionID": func(s *S) {
			s.ResourceGroup = "/subscriptions/99999999-0000-0000-0000-000000000001/resourceGroups/nodes"
		},
		"spec.sshPublicKey in body should match": func(s *S) { s.SSHPublicKey = "ssh-dss AAAA" },
	} {
		spec := fullSpec()
		change(&spec)
		NewWithT(t).Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(MatchError(ContainSubstring(message)), message)
	}
}

// TestSpecs_AlwaysRefusedByAzure_AreRefusedAtAdmission with a remedy: CAPZ #2429, azure-docs #83535, azure-sdk-for-java #41529.
func TestSpecs_AlwaysRefusedByAzure_AreRefusedAtAdmission(t *testing.T) {
	type S = infrav1.AzureMachineSpec
	disk := func(kind, caching string, size int32) func(*S) {
		return func(s *S) {
			s.DataDisks[0].StorageAccountType, s.DataDisks[0].Caching, s.DataDisks[0].SizeGiB = kind, caching, size
		}
	}
	placed := func(p infrav1.Placement, change func(*S)) func(*S) {
		return func(s *S) {
			s.Spot, s.Zones, s.Placement = nil, nil, &p
			change(s)
		}
	}
	set, hosts := others+"Microsoft.Compute/availabilitySets/a", others+"Microsoft.Compute/hostGroups/h"
	for _, row := range []struct {
		message string
		change  func(*S)
	}{
		{"spec.osDisk.storageAccountType: Unsupported value", func(s *S) { s.OSDisk.StorageAccountType = "PremiumV2_LRS" }},
		{"spec.osDisk.storageAccountType: Unsupported value", func(s *S) { s.OSDisk.StorageAccountType = "UltraSSD_LRS" }},
		{"spec.osDisk.sizeGiB", func(s *S) { s.OSDisk.SizeGiB = ptr(int32(4096)) }},
		{"remove caching, or set it to None", disk("UltraSSD_LRS", "ReadOnly", 100)},
		{"remove caching, or set it to None", disk("PremiumV2_LRS", "ReadWrite", 100)},
		{"Azure caches disks of less than 4096 GiB alone", disk("Premium_LRS", "ReadOnly", 4096)},
		{"a disk has at most 32767 GiB", disk("Premium_LRS", "", 65536)},
		{"a disk has at most 32767 GiB", disk("StandardSSD_ZRS", "", 32768)},
		{"a disk has at most 32767 GiB", disk("", "", 40000)},
		{"spec.dataDisks[0].sizeGiB", disk("UltraSSD_LRS", "", 65537)},
		{"set ultraSSD to true", func(s *S) { disk("UltraSSD_LRS", "", 100)(s); s.UltraSSD = nil }},
		{"set ultraSSD to true", func(s *S) { disk("UltraSSD_LRS", "", 100)(s); s.UltraSSD = ptr(false) }},
		{"no disks of type UltraSSD_LRS", placed(infrav1.Placement{AvailabilitySetID: set}, disk("PremiumV2_LRS", "", 100))},
		{"a capacity reservation is for machines without", placed(infrav1.Placement{HostGroupID: hosts}, func(s *S) {
			s.CapacityReservationGroupID = others + "Microsoft.Compute/capacityReservationGroups/c"
		})},
		{"run on no dedicated host", func(s *S) { s.Placement.HostGroupID = hosts }},
		{"secureBoot and vTPM need a type", func(s *S) { s.SecurityProfile.Type = "Standard" }},
		{"spec.diskControllerType: Unsupported value", func(s *S) { s.DiskControllerType = "IDE" }},
	} {
		spec := fullSpec()
		row.change(&spec)
		NewWithT(t).Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(MatchError(ContainSubstring(row.message)), row.message)
	}
	for _, change := range []func(*S){
		disk("UltraSSD_LRS", "None", 65536), disk("PremiumV2_LRS", "", 65536), disk("Premium_LRS", "None", 32767),
		disk("Premium_LRS", "ReadOnly", 4095), func(s *S) { s.SecurityProfile = &infrav1.SecurityProfile{Type: "Standard"} },
		func(s *S) { disk("PremiumV2_LRS", "", 10)(s); s.UltraSSD = nil }, func(s *S) { s.DiskControllerType = "NVMe" },
	} {
		spec := fullSpec()
		change(&spec)
		NewWithT(t).Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(Succeed())
	}
}

// CAPZ #2579: Spot machines with an ephemeral disk could not be created, since they cannot be deallocated.
func TestCAPZ2579SpotWithAnEphemeralDisk(t *testing.T) {
	g := NewWithT(t)
	spec := validSpec()
	spec.OSDisk, spec.Spot = &infrav1.OSDisk{Ephemeral: &infrav1.EphemeralDisk{}}, &infrav1.Spot{EvictionPolicy: "Deallocate"}
	g.Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(MatchError(ContainSubstring("set spot.evictionPolicy to Delete")))
	spec.Spot.EvictionPolicy = ""
	m := unowned(spec)
	g.Expect(c.Create(t.Context(), m, client.DryRunAll)).To(Succeed())
	g.Expect(m.Spec.Spot.EvictionPolicy).To(Equal("Delete"), "which is the default")
}

// TestSpecsAreImmutable, each field by a rule of its own, but for the provider ID, which is written once.
func TestSpecsAreImmutable(t *testing.T) {
	g := NewWithT(t)
	m := unowned(fullSpec())
	g.Expect(c.Create(t.Context(), m)).To(Succeed())
	other := fullSpec()
	other.SubscriptionID, other.ResourceGroup, other.Location, other.VMSize = strings.Replace(
		other.SubscriptionID,
		"1",
		"2",
		1,
	), "other", "northeurope", "Other"
	other.SubnetID, other.Image.ID = other.SubnetID+"x", other.Image.ID+"1"
	required := []string{"subscriptionID", "resourceGroup", "location", "vmSize", "subnetID", "image"}
	fields := reflect.TypeFor[infrav1.AzureMachineSpec]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || name == "capacityReservationGroupID" || name == "privateIPAddress" { // Which exclude others.
			continue
		}
		changed := m.DeepCopy()
		value := reflect.ValueOf(&changed.Spec).Elem().Field(i)
		if !slices.Contains(required, name) {
			value.SetZero()
		} else {
			value.Set(reflect.ValueOf(other).Field(i))
		}
		g.Expect(c.Patch(t.Context(), changed, client.MergeFrom(m))).To(MatchError(ContainSubstring(name+" is immutable")), name)
	}
	for name, change := range map[string]func(*infrav1.AzureMachineSpec){
		"launchTimeoutSeconds": func(s *infrav1.AzureMachineSpec) { s.LaunchTimeoutSeconds = ptr(int32(700)) },
		"userDataCompression":  func(s *infrav1.AzureMachineSpec) { s.UserDataCompression = "Gzip" },
		"privateIPAddress":     func(s *infrav1.AzureMachineSpec) { s.PublicIP, s.PrivateIPAddress = nil, "10.1.0.5" },
	} {
		changed := m.DeepCopy()
		change(&changed.Spec)
		g.Expect(c.Patch(t.Context(), changed, client.MergeFrom(m))).To(MatchError(ContainSubstring(name + " is immutable")))
	}
	before := m.DeepCopy()
	m.Spec.ProviderID = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/x"
	g.Expect(c.Patch(t.Context(), m, client.MergeFrom(before))).To(Succeed())
	before = m.DeepCopy()
	m.Spec.ProviderID = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/y"
	g.Expect(c.Patch(t.Context(), m, client.MergeFrom(before))).To(MatchError(ContainSubstring("providerID is immutable")))
	template := &infrav1.AzureMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "t-"}}
	template.Spec.Template.Spec = validSpec()
	template.Spec.Template.Spec.ProviderID = m.Spec.ProviderID
	g.Expect(c.Create(t.Context(), template)).To(MatchError(ContainSubstring("cannot be set in a template")))
	template.Spec.Template.Spec.ProviderID, template.Spec.Template.Spec.PrivateIPAddress = "", "10.1.0.5"
	g.Expect(c.Create(t.Context(), template)).To(MatchError(ContainSubstring("privateIPAddress belongs to one machine")))
}

// TestTheSamples are what the API server takes.
func TestTheSamples(t *testing.T) {
	for file, object := range map[string]client.Object{
		"azuremachinetemplate.yaml": &infrav1.AzureMachineTemplate{}, "azureidentity.yaml": &infrav1.AzureIdentity{},
	} {
		g := NewWithT(t)
		raw, err := os.ReadFile("../../config/samples/azure/" + file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.UnmarshalStrict(raw, object)).To(Succeed())
		g.Expect(c.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
	}
}
