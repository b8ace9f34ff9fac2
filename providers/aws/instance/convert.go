package instance

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	apitypes "k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Codes of StateReason with which AWS takes a spot instance back.
var interruptionCodes = map[string]bool{
	"Server.SpotInstanceTermination": true,
	"Server.SpotInstanceShutdown":    true,
}

// fromEC2 turns EC2's description of an instance into the driver's.
func fromEC2(i types.Instance) driver.Instance {
	zone := ""
	if i.Placement != nil {
		zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	out := driver.Instance{
		ID:            aws.ToString(i.InstanceId),
		ProviderID:    providerID(zone, aws.ToString(i.InstanceId)),
		Token:         aws.ToString(i.ClientToken),
		OwnerUID:      apitypes.UID(tagValue(i.Tags, TagOwnerUID)),
		Owner:         tagValue(i.Tags, TagMachine),
		Lineage:       tagValue(i.Tags, TagLineage),
		State:         stateOf(i.State),
		LaunchTime:    aws.ToTime(i.LaunchTime),
		FailureDomain: zone,
		Addresses:     addresses(i),
		Interruptible: i.InstanceLifecycle == types.InstanceLifecycleTypeSpot,
		InstanceType:  string(i.InstanceType),
		Settings:      settings(i),
		Market:        marketOfInstance(i),
	}
	if i.StateReason != nil {
		out.StateCode = aws.ToString(i.StateReason.Code)
		out.StateMessage = messageOf(out.StateCode, aws.ToString(i.StateReason.Message))
		out.Interrupted = interruptionCodes[out.StateCode]
		out.Refused = refusedLate(out)
		if _, code, _ := strings.Cut(out.StateCode, "."); out.Refused != "" {
			out.RefusedOnlyPlace, out.RefusedAllTypes = slices.Contains(placeCodes, code), slices.Contains(allTypesCodes, code)
		}
	}
	return out
}

// refusedLate is the class of error for which EC2 has taken a launch back, if another launch may succeed: it lacked capacity, or
// the account is over a limit that shows only when the instance is started. The codes are those of refused launches, with a prefix.
func refusedLate(i driver.Instance) driver.Class {
	ended := i.State == driverv1.InstanceTerminating || i.State == driverv1.InstanceTerminated
	origin, code, prefixed := strings.Cut(i.StateCode, ".")
	if !ended || !prefixed {
		return ""
	}
	switch class := classOf(code, ""); {
	case origin == "Server" && class == driver.ClassCapacity, origin == "Client" && class == driver.ClassQuota:
		return class
	}
	return ""
}

// messageOf drops the code that EC2 repeats at the beginning of the message.
func messageOf(code, message string) string {
	if code == "" {
		return message
	}
	return strings.TrimPrefix(strings.TrimPrefix(message, code), ": ")
}

// stateOf maps EC2's states. A state that AWS adds one day counts as pending: it is waited for, and
// nothing is concluded from it.
func stateOf(s *types.InstanceState) driverv1.InstanceState {
	if s == nil {
		return driverv1.InstancePending
	}
	switch s.Name {
	case types.InstanceStateNameRunning:
		return driverv1.InstanceRunning
	case types.InstanceStateNameStopping:
		return driverv1.InstanceStopping
	case types.InstanceStateNameStopped:
		return driverv1.InstanceStopped
	case types.InstanceStateNameShuttingDown:
		return driverv1.InstanceTerminating
	case types.InstanceStateNameTerminated:
		return driverv1.InstanceTerminated
	case types.InstanceStateNamePending:
	}
	return driverv1.InstancePending
}

// addresses returns the addresses in the order in which the AWS cloud controller manager gives them to the Node, each once:
// https://github.com/kubernetes/cloud-provider-aws (getInstanceNodeAddress), of both IP families. EC2 lists interfaces in any order.
func addresses(i types.Instance) []clusterv1.MachineAddress {
	list := &addressList{}
	list.add(clusterv1.MachineInternalIP, aws.ToString(i.PrivateIpAddress))
	inUse := interfacesInUse(i)
	for _, nic := range inUse {
		for _, a := range nic.PrivateIpAddresses {
			list.add(clusterv1.MachineInternalIP, aws.ToString(a.PrivateIpAddress))
		}
	}
	list.add(clusterv1.MachineExternalIP, aws.ToString(i.PublicIpAddress))
	list.add(clusterv1.MachineInternalDNS, aws.ToString(i.PrivateDnsName))
	list.add(clusterv1.MachineHostName, aws.ToString(i.PrivateDnsName))
	list.add(clusterv1.MachineExternalDNS, aws.ToString(i.PublicDnsName))
	for _, nic := range inUse {
		if len(nic.Ipv6Addresses) > 0 { // The others of an interface are for Pods.
			list.add(clusterv1.MachineInternalIP, canonical(aws.ToString(nic.Ipv6Addresses[0].Ipv6Address)))
		}
	}
	return list.items
}

// interfacesInUse returns the interfaces that are attached, by device index: the primary one first. Where no status is
// given, nothing says that an interface is not in use.
func interfacesInUse(i types.Instance) []types.InstanceNetworkInterface {
	var inUse []types.InstanceNetworkInterface
	for _, nic := range i.NetworkInterfaces {
		if nic.Status == types.NetworkInterfaceStatusInUse || nic.Status == "" {
			inUse = append(inUse, nic)
		}
	}
	slices.SortStableFunc(inUse, func(a, b types.InstanceNetworkInterface) int {
		byID := cmp.Compare(aws.ToString(a.NetworkInterfaceId), aws.ToString(b.NetworkInterfaceId))
		return cmp.Or(cmp.Compare(deviceIndex(a), deviceIndex(b)), byID)
	})
	return inUse
}

// deviceIndex orders interfaces as their devices; those of which EC2 does not say it go last.
func deviceIndex(nic types.InstanceNetworkInterface) int32 {
	if nic.Attachment == nil || nic.Attachment.DeviceIndex == nil {
		return math.MaxInt32
	}
	return aws.ToInt32(nic.Attachment.DeviceIndex)
}

type addressList struct {
	items []clusterv1.MachineAddress
}

func (l *addressList) add(kind clusterv1.MachineAddressType, address string) {
	if address == "" {
		return
	}
	for _, a := range l.items {
		if a.Type == kind && a.Address == address {
			return
		}
	}
	l.items = append(l.items, clusterv1.MachineAddress{Type: kind, Address: address})
}

// canonical returns an IPv6 address in its canonical form, so that it compares equal to that of a Node.
func canonical(address string) string {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return parsed.String()
}
