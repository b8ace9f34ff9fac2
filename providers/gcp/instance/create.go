package instance

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

// Create inserts an instance unless there is one of its name in the zone. The same request ID gets the operation of the earlier call.
func (d *Driver) Create(ctx context.Context, launch driver.Launch[*infrav1.GCPMachine]) (driver.Accepted, error) {
	var accepted operation
	err := d.call(ctx, launch.Scope, request{
		name: "instances.insert", method: http.MethodPost, path: []string{"zones", launch.Placement.ID, "instances"},
		query: url.Values{"requestId": {launch.RequestID}, "fields": {operationFields}}, body: instanceOf(launch, d.policyOf(ctx, launch)),
	}, &accepted)
	if err != nil {
		return driver.Accepted{}, d.missingType(ctx, launch, ofSpec(err))
	}
	return driver.Accepted{Operation: accepted.Name}, nil
}

// instanceOf is the instance that a launch asks for.
func instanceOf(launch driver.Launch[*infrav1.GCPMachine], maintenance infrav1.OnHostMaintenance) vm {
	spec := &launch.Object.Spec
	zone := "zones/" + launch.Placement.ID
	labels := map[string]string{}
	for k, v := range spec.Labels {
		labels[k] = string(v)
	}
	maps.Copy(labels, markOf(launch))
	instance := vm{
		Name: launch.Name, MachineType: zone + "/machineTypes/" + launch.Placement.InstanceType, Labels: labels,
		CanIPForward: ptr.Deref(spec.CanIPForward, false), DeletionProtection: ptr.Deref(spec.DeletionProtection, false),
		NetworkInterfaces: []nic{interfaceOf(spec)}, Disks: disksOf(launch, labels, zone),
		Metadata: metadataOf(spec, launch.UserData), Scheduling: schedulingOf(spec, maintenance), ReservationAffinity: affinityOf(spec),
	}
	if len(spec.NetworkTags) > 0 {
		instance.Tags = &tags{spec.NetworkTags}
	}
	if a := spec.ServiceAccount; a != nil {
		scopes := a.ScopeURLs()
		if len(scopes) == 0 {
			scopes = []string{"https://www.googleapis.com/auth/cloud-platform"}
		}
		instance.ServiceAccounts = []serviceAccount{{a.Address(), scopes}}
	}
	for _, a := range spec.Accelerators {
		instance.GuestAccelerators = append(instance.GuestAccelerators, accelerator{zone + "/acceleratorTypes/" + a.TypeName(), a.Count})
	}
	if s := spec.Shielded; s != nil {
		instance.ShieldedInstanceConfig = &shieldedConfig{
			ptr.Deref(s.SecureBoot, false), ptr.Deref(s.VTPM, true), ptr.Deref(s.IntegrityMonitoring, true),
		}
	}
	if spec.ConfidentialType != "" {
		instance.ConfidentialInstanceConfig = &confidentialConfig{true, string(spec.ConfidentialType)}
		instance.MinCPUPlatform = leastProcessor(spec, launch.Placement.InstanceType)
	}
	return instance
}

// leastProcessor is the least processor of a Confidential VM: SEV_SNP, and SEV that migrates on n2d, need AMD Milan.
func leastProcessor(spec *infrav1.GCPMachineSpec, machineType string) string {
	migrates := spec.ConfidentialType == "SEV" && spec.OnHostMaintenance == infrav1.OnHostMaintenanceMigrate
	if strings.HasPrefix(machineType, "n2d-") && (migrates || spec.ConfidentialType == "SEV_SNP") {
		return "AMD Milan"
	}
	return ""
}

// markOf are the labels that instances and disks are marked with.
func markOf(launch driver.Launch[*infrav1.GCPMachine]) map[string]string {
	return map[string]string{
		LabelOwnerUID: string(launch.OwnerUID), LabelOwner: driver.OwnerDigest(launch.Owner),
		LabelToken: launch.Token, LabelLineage: launch.Lineage,
	}
}

func interfaceOf(spec *infrav1.GCPMachineSpec) nic {
	n := nic{Subnetwork: spec.SubnetworkPath(), StackType: string(spec.StackType)}
	if n.Subnetwork == "" {
		n.Network = "global/networks/default"
	}
	if ptr.Deref(spec.PublicIP, false) {
		n.AccessConfigs = []accessConfig{{Type: "ONE_TO_ONE_NAT", Name: "external-nat"}}
	}
	for _, r := range spec.AliasIPRanges {
		n.AliasIPRanges = append(n.AliasIPRanges, aliasIPRange{r.IPCIDRRange, r.SecondaryRange})
	}
	return n
}

// disksOf are the disks of an instance, the first of which it boots from. All are deleted with it.
func disksOf(launch driver.Launch[*infrav1.GCPMachine], labels map[string]string, zone string) []attachedDisk {
	spec := &launch.Object.Spec
	boot := diskOf(ptr.Deref(spec.BootDisk, infrav1.Disk{}), labels, zone)
	boot.Boot, boot.InitializeParams.SourceImage, boot.InitializeParams.DiskName = true, spec.ImagePath(), diskName(launch, 0)
	all := []attachedDisk{boot}
	for n, wanted := range spec.Disks {
		one := diskOf(wanted, labels, zone)
		if one.Type == "" {
			one.InitializeParams.DiskName = diskName(launch, n+1)
		}
		all = append(all, one)
	}
	return all
}

func diskOf(wanted infrav1.Disk, labels map[string]string, zone string) attachedDisk {
	d := attachedDisk{AutoDelete: true, InitializeParams: &initializeParams{Labels: labels}}
	if wanted.Type != "" {
		d.InitializeParams.DiskType = zone + "/diskTypes/" + wanted.TypeName()
	}
	if wanted.TypeName() == "local-ssd" {
		// Local SSDs are no resources of their own: they have neither names nor labels.
		d.Type, d.Interface, d.InitializeParams.Labels = "SCRATCH", "NVME", nil
		return d
	}
	d.InitializeParams.DiskSizeGB = number(wanted.SizeGiB)
	d.InitializeParams.ProvisionedIOPS = number(wanted.ProvisionedIOPS)
	d.InitializeParams.ProvisionedThroughput = number(wanted.ProvisionedThroughputMiBps)
	if key := wanted.KeyPath(); key != "" {
		d.DiskEncryptionKey = &encryptionKey{key}
	}
	return d
}

// number is a number as the API has those of 64 bits; empty if it is not set.
func number(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

// diskName is the name of the n-th disk of a launch, which no other attempt and no other machine has: Compute Engine would attach a
// disk that exists under that name, whosever it is, in place of making one.
func diskName(launch driver.Launch[*infrav1.GCPMachine], n int) string {
	sum := sha256.Sum256([]byte(launch.Token))
	suffix := fmt.Sprintf("-%x-%d", sum[:6], n)
	return strings.TrimRight(launch.Name[:min(len(launch.Name), 63-len(suffix))], "-") + suffix
}

// metadataOf are those of the spec and the bootstrap data, where cloud-init and Ignition look for it. What is no text, because it was
// compressed, is handed over in base64, with an item that names this encoding.
func metadataOf(spec *infrav1.GCPMachineSpec, userData []byte) *metadata {
	m := &metadata{}
	for _, key := range slices.Sorted(maps.Keys(spec.Metadata)) {
		m.Items = append(m.Items, metadataItem{key, string(spec.Metadata[key])})
	}
	if utf8.Valid(userData) {
		m.Items = append(m.Items, metadataItem{"user-data", string(userData)})
		return m
	}
	m.Items = append(m.Items, metadataItem{"user-data", base64.StdEncoding.EncodeToString(userData)},
		metadataItem{"user-data-encoding", "base64"})
	return m
}

// schedulingOf is nil if everything is as Compute Engine does it by default.
func schedulingOf(spec *infrav1.GCPMachineSpec, maintenance infrav1.OnHostMaintenance) *scheduling {
	s := &scheduling{ProvisioningModel: string(spec.ProvisioningModel), OnHostMaintenance: string(maintenance)}
	if spec.ProvisioningModel == infrav1.ProvisioningModelSpot {
		s.InstanceTerminationAction, s.AutomaticRestart = string(spec.InstanceTerminationAction), ptr.To(false)
		if s.InstanceTerminationAction == "" {
			s.InstanceTerminationAction = string(infrav1.InstanceTerminationActionDelete)
		}
	}
	if *s == (scheduling{}) {
		return nil
	}
	return s
}

func affinityOf(spec *infrav1.GCPMachineSpec) *affinity {
	r := spec.Reservation
	if r == nil {
		return nil
	}
	a := &affinity{ConsumeReservationType: string(r.Affinity)}
	if r.Affinity == infrav1.ReservationAffinitySpecific {
		a.Key, a.Values = "compute.googleapis.com/reservation-name", []string{spec.ReservationName()}
	}
	return a
}
