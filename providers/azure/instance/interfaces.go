package instance

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// networkOf describes the interfaces, which Azure makes with the machine and deletes with it.
func networkOf(spec *infrav1.AzureMachineSpec, name string, tags map[string]*string) *armcompute.NetworkProfile {
	profile := &armcompute.NetworkProfile{NetworkAPIVersion: ptr(armcompute.NetworkAPIVersionTwoThousandTwenty1101)}
	for i, n := range interfacesOf(spec) {
		config := armcompute.VirtualMachineNetworkInterfaceConfiguration{
			Name: ptr(numbered(name, i)), Tags: tags,
			Properties: &armcompute.VirtualMachineNetworkInterfaceConfigurationProperties{
				Primary: ptr(i == 0), DeleteOption: ptr(armcompute.DeleteOptionsDelete),
				EnableAcceleratedNetworking: n.AcceleratedNetworking, EnableIPForwarding: n.IPForwarding,
				NetworkSecurityGroup: sub(n.NetworkSecurityGroupID),
			},
		}
		add := func(name string, version armcompute.IPVersions) *armcompute.VirtualMachineNetworkInterfaceIPConfigurationProperties {
			p := &armcompute.VirtualMachineNetworkInterfaceIPConfigurationProperties{
				Primary: ptr(version == armcompute.IPVersionsIPv4), Subnet: sub(n.SubnetID), PrivateIPAddressVersion: &version,
			}
			config.Properties.IPConfigurations = append(config.Properties.IPConfigurations,
				&armcompute.VirtualMachineNetworkInterfaceIPConfiguration{Name: &name, Properties: p})
			return p
		}
		first := add(primaryAddress, armcompute.IPVersionsIPv4)
		if i == 0 && isTrue(spec.PublicIP) {
			first.PublicIPAddressConfiguration = publicAddressOf(name, tags)
		}
		if i == 0 && isTrue(spec.IPv6) {
			add(ipv6Address, armcompute.IPVersionsIPv6)
		}
		profile.NetworkInterfaceConfigurations = append(profile.NetworkInterfaceConfigurations, &config)
	}
	return profile
}

// The names of IP configurations.
const primaryAddress, ipv6Address = "primary", "ipv6"

// interfacesOf are all interfaces, the primary one first.
func interfacesOf(spec *infrav1.AzureMachineSpec) []infrav1.NetworkInterface {
	return append([]infrav1.NetworkInterface{{
		SubnetID: spec.SubnetID, NetworkSecurityGroupID: spec.NetworkSecurityGroupID, AcceleratedNetworking: spec.AcceleratedNetworking,
		IPForwarding: spec.IPForwarding,
	}}, spec.ExtraInterfaces...)
}

// numbered is the name of an interface: the primary one has that of the machine.
func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i)
}

func publicAddressOf(name string, tags map[string]*string) *armcompute.VirtualMachinePublicIPAddressConfiguration {
	return &armcompute.VirtualMachinePublicIPAddressConfiguration{
		Name: &name, Tags: tags,
		SKU: &armcompute.PublicIPAddressSKU{
			Name: ptr(armcompute.PublicIPAddressSKUNameStandard), Tier: ptr(armcompute.PublicIPAddressSKUTierRegional),
		},
		Properties: &armcompute.VirtualMachinePublicIPAddressConfigurationProperties{
			DeleteOption: ptr(armcompute.DeleteOptionsDelete), PublicIPAllocationMethod: ptr(armcompute.PublicIPAllocationMethodStatic),
		},
	}
}

// prepare makes the interfaces of a machine before the machine, which an address of the user's choice takes: interfaces that a launch
// describes have none. They carry the mark, and go with the machine. What a crash or a refusal leaves of it is found by its name when the
// launch is repeated, and ended by its mark else.
func (s *subscription) prepare(
	ctx context.Context, group string, launch driver.Launch[*infrav1.AzureMachine], tags map[string]*string,
) (*armcompute.NetworkProfile, error) {
	profile := &armcompute.NetworkProfile{}
	for i, n := range interfacesOf(&launch.Object.Spec) {
		id, err := s.prepareOne(ctx, group, launch, numbered(ownName(launch), i), interfaceBody(&launch.Object.Spec, n, i == 0, tags))
		if err != nil {
			return nil, err
		}
		profile.NetworkInterfaces = append(profile.NetworkInterfaces, &armcompute.NetworkInterfaceReference{
			ID: &id, Properties: &armcompute.NetworkInterfaceReferenceProperties{
				Primary: ptr(i == 0), DeleteOption: ptr(armcompute.DeleteOptionsDelete),
			},
		})
	}
	return profile, nil
}

// ownName is a name of interfaces that nothing else has by chance: a PUT to Azure has no precondition that there is none, so an existing
// interface of that name would be changed.
func ownName(launch driver.Launch[*infrav1.AzureMachine]) string {
	sum := sha256.Sum256([]byte(launch.OwnerUID))
	return launch.Name + "-" + hex.EncodeToString(sum[:4])
}

// prepareOne makes an interface unless there is one, and returns its ID once it can be used. One of ours that Azure could not make is put
// again, unless a machine has it. The virtual machine was not asked for, but a PUT whose answer was lost, and an interface that is not
// done, count as unknown all the same: the interface, and the address that it holds, may come to be after the object would be gone.
func (s *subscription) prepareOne(
	ctx context.Context, group string, launch driver.Launch[*infrav1.AzureMachine], name string, body any,
) (string, error) {
	const operation = "NetworkInterfaces_CreateOrUpdate"
	n, err := s.network.get(ctx, group, kindInterfaces, name)
	switch err = classify("NetworkInterfaces_Get", err); {
	case err != nil && !driver.IsNotFound(err):
		return "", ofLaunch(driver.WithoutEffect(err))
	case err == nil && (marked(n.Tags).OwnerUID != launch.OwnerUID || marked(n.Tags).Owner != launch.Owner):
		return "", driver.NewRefusedError(operation, "",
			errors.Errorf("there is a network interface %s without the mark of this object: remove it", name))
	case err != nil, n.failed() && !n.used():
		if n, err = s.network.put(ctx, group, kindInterfaces, name, body); err != nil {
			return "", ofLaunch(classify(operation, err))
		}
	}
	switch state := n.Properties.ProvisioningState; {
	case strings.EqualFold(state, "Succeeded"):
		return n.ID, nil
	case n.failed(), strings.EqualFold(state, "Deleting"):
		return "", driver.NewRefusedError(operation, "", errors.Errorf("network interface %s is in the state %s", name, state))
	}
	return "", driver.NewUnknownError(operation, "", errors.Errorf("network interface %s is still being created", name))
}

// interfaceBody is the body of a PUT of an interface.
func interfaceBody(spec *infrav1.AzureMachineSpec, n infrav1.NetworkInterface, primary bool, tags map[string]*string) any {
	type object = map[string]any
	address := object{
		"primary": true, "subnet": object{"id": n.SubnetID}, "privateIPAddressVersion": "IPv4", "privateIPAllocationMethod": "Dynamic",
	}
	if primary {
		address["privateIPAllocationMethod"], address["privateIPAddress"] = "Static", spec.PrivateIPAddress
	}
	addresses := []any{object{"name": primaryAddress, "properties": address}}
	if primary && isTrue(spec.IPv6) {
		addresses = append(addresses, object{"name": ipv6Address, "properties": object{
			"subnet": object{"id": n.SubnetID}, "privateIPAddressVersion": "IPv6", "privateIPAllocationMethod": "Dynamic",
		}})
	}
	properties := object{
		"ipConfigurations": addresses, "enableAcceleratedNetworking": isTrue(n.AcceleratedNetworking),
		"enableIPForwarding": isTrue(n.IPForwarding),
	}
	if n.NetworkSecurityGroupID != "" {
		properties["networkSecurityGroup"] = object{"id": n.NetworkSecurityGroupID}
	}
	return object{"location": spec.Location, "tags": tags, "properties": properties}
}

// byPrimary orders interfaces: the address of the primary one is the first.
func byPrimary(a, b networkPart) int {
	rank := func(n networkPart) int {
		if n.Properties.Primary {
			return 0
		}
		return 1
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name))
}
