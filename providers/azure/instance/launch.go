package instance

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Places are the zones of the spec, or the region, with each of its sizes. Nothing is asked of Azure: what a zone does not have is a
// shortage like any other.
func (d *Driver) Places(_ context.Context, launch driver.Launch[*infrav1.AzureMachine]) ([]driver.Candidate, error) {
	spec, domain := canonical(&launch.Object.Spec), zoneOf(launch.FailureDomain)
	zones := spec.Zones
	if len(zones) == 0 {
		zones = []string{""}
	}
	var found []driver.Candidate
	for rank, size := range each(append([]string{spec.VMSize}, spec.FallbackVMSizes...), sizeName) {
		for _, zone := range zones {
			if domain != "" && domain != zone {
				continue
			}
			place := driver.Placement{ID: placeOf(spec.Location, zone), FailureDomain: zone, InstanceType: size, Market: marketOf(spec)}
			found = append(found, driver.Candidate{Placement: place, Rank: rank, Terms: termsOf(spec), Subnet: strings.ToLower(spec.SubnetID)})
		}
	}
	if len(found) == 0 {
		return nil, driver.NewTerminalError("Places", "", errors.Errorf("failure domain %q is not among spec.zones", launch.FailureDomain))
	}
	return found, nil
}

// noMaxPrice is how Azure writes that there is no limit; az prints -1.0.
const noMaxPrice = "-1"

// termsOf is the most that the spec pays for a Spot machine.
func termsOf(spec *infrav1.AzureMachineSpec) string {
	if spec.Spot == nil || spec.Spot.MaxPrice == "" || strings.HasPrefix(spec.Spot.MaxPrice, noMaxPrice) {
		return ""
	}
	return "for " + spec.Spot.MaxPrice + " USD an hour at most"
}

// placeOf names a zone as the Azure cloud-controller-manager does in labels of Nodes, or the region.
func placeOf(location, zone string) string {
	if zone == "" {
		return location
	}
	return location + "-" + zone
}

// Create asks for a machine, with its interface and disks, unless there is one of its name. Once that is accepted the machine exists,
// whatever becomes of it: one that fails is kept as Failed.
func (d *Driver) Create(ctx context.Context, launch driver.Launch[*infrav1.AzureMachine]) (driver.Accepted, error) {
	const operation = "VirtualMachines_CreateOrUpdate"
	object := *launch.Object
	object.Spec = *canonical(&launch.Object.Spec)
	launch.Object = &object
	machine, err := describe(launch)
	if err != nil {
		return driver.Accepted{}, driver.NewTerminalError(operation, "", err)
	}
	s, group, err := d.in(ctx, launch.Scope)
	if err != nil {
		return driver.Accepted{}, err
	}
	if launch.Object.Spec.PrivateIPAddress != "" {
		if machine.Properties.NetworkProfile, err = s.prepare(ctx, group, launch, machine.Tags); err != nil {
			return driver.Accepted{}, err
		}
	}
	d.young.note(machineKey(launch.Scope, launch.Name), d.clock.Now())
	var response *http.Response
	_, err = s.machines.BeginCreateOrUpdate(policy.WithCaptureResponse(ctx, &response), group, launch.Name, machine,
		&armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: ptr("*")})
	if err != nil {
		return driver.Accepted{}, unlessAccepted(response, withRemedy(ofLaunch(classify(operation, err)), &launch.Object.Spec))
	}
	return driver.Accepted{Instance: driver.Instance{
		ID: launch.Name, Name: launch.Name, ProviderID: providerID(launch.Scope, launch.Name), Token: launch.Token, OwnerUID: launch.OwnerUID,
		Owner: launch.Owner, Lineage: launch.Lineage, State: driverv1.InstancePending, LaunchTime: d.clock.Now(),
		FailureDomain: launch.Placement.FailureDomain, InstanceType: launch.Placement.InstanceType, Market: launch.Placement.Market,
		Interruptible: launch.Object.Spec.Spot != nil,
	}}, nil
}

// unlessAccepted has an error of what comes after an accepted call count as a lost answer.
func unlessAccepted(response *http.Response, err error) error {
	var e *driver.Error
	if response != nil && response.StatusCode < 300 && errors.As(err, &e) && e.Class != driver.ClassUnknown {
		return driver.NewUnknownError(e.Operation, e.Code, e.Err)
	}
	return err
}

// adminUser is the user that Azure makes on each machine.
const adminUser = "azureuser"

// describe is the body of the launch.
func describe(launch driver.Launch[*infrav1.AzureMachine]) (armcompute.VirtualMachine, error) {
	spec := &launch.Object.Spec
	key := spec.SSHPublicKey
	if key == "" {
		var err error
		if key, err = throwawayKey(); err != nil {
			return armcompute.VirtualMachine{}, err
		}
	}
	tags := ownershipTags(launch)
	machine := armcompute.VirtualMachine{
		Location: &spec.Location, Tags: tags, Plan: planOf(spec), Identity: identitiesOf(spec),
		Properties: &armcompute.VirtualMachineProperties{
			HardwareProfile: &armcompute.HardwareProfile{VMSize: ptr(armcompute.VirtualMachineSizeTypes(launch.Placement.InstanceType))},
			StorageProfile:  storageOf(spec),
			NetworkProfile:  networkOf(spec, launch.Name, tags),
			OSProfile: &armcompute.OSProfile{
				ComputerName: ptr(launch.Name), AdminUsername: ptr(adminUser), CustomData: ptr(base64.StdEncoding.EncodeToString(launch.UserData)),
				LinuxConfiguration: &armcompute.LinuxConfiguration{
					DisablePasswordAuthentication: ptr(true),
					SSH: &armcompute.SSHConfiguration{PublicKeys: []*armcompute.SSHPublicKey{
						{KeyData: &key, Path: ptr("/home/" + adminUser + "/.ssh/authorized_keys")},
					}},
				},
			},
		},
	}
	if zone := launch.Placement.FailureDomain; zone != "" {
		machine.Zones = []*string{&zone}
	}
	if err := addOptions(machine.Properties, spec); err != nil {
		return armcompute.VirtualMachine{}, err
	}
	return machine, nil
}

// addOptions adds what a spec may leave out.
func addOptions(p *armcompute.VirtualMachineProperties, spec *infrav1.AzureMachineSpec) error {
	if s := spec.Spot; s != nil {
		p.Priority = ptr(armcompute.VirtualMachinePriorityTypesSpot)
		p.EvictionPolicy = ptr(armcompute.VirtualMachineEvictionPolicyTypes(s.EvictionPolicy))
		price := -1.0 // Not taken back for its price.
		if s.MaxPrice != "" {
			var err error
			if price, err = strconv.ParseFloat(s.MaxPrice, 64); err != nil {
				return errors.Wrap(err, "spec.spot.maxPrice")
			}
		}
		p.BillingProfile = &armcompute.BillingProfile{MaxPrice: &price}
	}
	if s := spec.SecurityProfile; s != nil {
		p.SecurityProfile = securityOf(s)
		if s.Type == string(armcompute.SecurityTypesConfidentialVM) {
			// Required of confidential machines: at least their state is encrypted.
			confide(p.StorageProfile.OSDisk)
		}
	}
	if id := spec.CapacityReservationGroupID; id != "" {
		p.CapacityReservation = &armcompute.CapacityReservationProfile{CapacityReservationGroup: sub(id)}
	}
	if s := spec.Placement; s != nil {
		p.AvailabilitySet, p.VirtualMachineScaleSet = sub(s.AvailabilitySetID), sub(s.ScaleSetID)
		p.ProximityPlacementGroup, p.HostGroup = sub(s.ProximityPlacementGroupID), sub(s.HostGroupID)
	}
	if isTrue(spec.BootDiagnostics) {
		p.DiagnosticsProfile = &armcompute.DiagnosticsProfile{BootDiagnostics: &armcompute.BootDiagnostics{Enabled: ptr(true)}}
	}
	if isTrue(spec.UltraSSD) {
		p.AdditionalCapabilities = &armcompute.AdditionalCapabilities{UltraSSDEnabled: ptr(true)}
	}
	return nil
}

// throwawayKey is a public key whose private key was discarded: Azure requires one of each machine that has no password.
func throwawayKey() (string, error) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", errors.Wrap(err, "making a key")
	}
	const kind = "ssh-ed25519"
	// The wire format of RFC 8709: two strings, each after its length.
	var wire []byte
	for _, part := range [][]byte{[]byte(kind), public} {
		wire = binary.BigEndian.AppendUint32(wire, uint32(len(part)))
		wire = append(wire, part...)
	}
	return kind + " " + base64.StdEncoding.EncodeToString(wire) + " nobody", nil
}

func ptr[T any](v T) *T { return &v }

func isTrue(b *bool) bool { return b != nil && *b }

// sub refers to a resource; nil for none.
func sub(id string) *armcompute.SubResource {
	if id == "" {
		return nil
	}
	return &armcompute.SubResource{ID: &id}
}
