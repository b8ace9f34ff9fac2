package arm

import (
	"net/http"
	"slices"
)

// deleteOptions are what may become of what a machine has when it is deleted.
var deleteOptions = []string{"", "Delete", "Detach"}

func (s *Server) validNetwork(in *request, doc *vmDocument) error {
	p := doc.Properties.NetworkProfile
	count := len(p.NetworkInterfaces) + len(p.NetworkInterfaceConfigurations)
	switch {
	case count == 0:
		return badRequest("Virtual machine must have at least one network interface.")
	case len(p.NetworkInterfaces) > 0 && len(p.NetworkInterfaceConfigurations) > 0:
		return badRequest("networkInterfaces and networkInterfaceConfigurations cannot both be specified.")
	case len(p.NetworkInterfaceConfigurations) > 0 && p.NetworkAPIVersion == "":
		return badRequest("networkApiVersion is required when networkInterfaceConfigurations are specified.")
	}
	if size := s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize); count > size.Interfaces {
		return badRequest("The number of network interfaces for virtual machine %s exceeds the maximum allowed for the virtual machine size %s. "+
			"The number of network interfaces is %d and the maximum allowed is %d.", in.name, size.Name, count, size.Interfaces)
	}
	primaries := 0
	for _, n := range p.NetworkInterfaceConfigurations {
		if err := s.validInterface(doc, n); err != nil {
			return err
		}
		if n.Properties.Primary {
			primaries++
		}
	}
	for _, n := range p.NetworkInterfaces {
		if err := s.validReference(in, n); err != nil {
			return err
		}
		if n.Properties.Primary {
			primaries++
		}
	}
	if count > 1 && primaries != 1 {
		return badRequest("Exactly one network interface must be primary, not %d.", primaries)
	}
	return nil
}

// validReference checks an existing interface.
func (s *Server) validReference(in *request, n interfaceReference) error {
	found := s.nics[key(n.ID)]
	switch {
	case found == nil:
		return s.missing(n.ID)
	case found.machine != nil:
		return fail(http.StatusBadRequest, "NicInUse", "Network Interface %s is used by existing resource %s.", found.id, found.machine.id)
	case found.reserved != "" && s.clock.Now().Before(found.reservedUntil) && !s.isFor(in, found.reserved):
		return reservedFailure(found)
	case s.clock.Now().Before(found.readyAt) || !found.goneAt.IsZero():
		return fail(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress.")
	case !slices.Contains(deleteOptions, n.Properties.DeleteOption):
		return badRequest("The value of parameter 'deleteOption' is invalid.")
	}
	return nil
}

func (s *Server) validInterface(doc *vmDocument, n interfaceConfig) error {
	if n.Name == "" || len(n.Properties.IPConfigurations) == 0 || n.Properties.IPConfigurations[0].Properties.Subnet == nil {
		return badRequest("A network interface configuration needs a name, an IP configuration and a subnet.")
	}
	if err := validTags(n.Tags); err != nil {
		return err
	}
	size := s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize)
	if n.Properties.EnableAcceleratedNetworking && !size.AcceleratedNetworking {
		return fail(http.StatusBadRequest, "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
			"VM size %s is not compatible with enabled accelerated networking.", size.Name)
	}
	if g := n.Properties.NetworkSecurityGroup; g != nil && !s.options.Catalog.has(g.ID) {
		return s.missing(g.ID)
	}
	for _, ip := range n.Properties.IPConfigurations {
		if ip.Properties.PrivateIPAddress != "" || ip.Properties.PrivateIPAllocationMethod != "" {
			return fail(http.StatusBadRequest, "InvalidRequestContent", "Could not find member 'privateIPAddress' on the object.")
		}
		if err := s.validAddress(ip, nil); err != nil {
			return err
		}
		public := ip.Properties.PublicIPAddressConfiguration
		if !slices.Contains(deleteOptions, n.Properties.DeleteOption) || public != nil && !slices.Contains(deleteOptions,
			public.Properties.DeleteOption) {
			return badRequest("The value of parameter 'deleteOption' is invalid.")
		}
	}
	return nil
}

func (s *Server) missing(id string) error {
	return fail(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource was not found. "+
		"Please make sure that the referenced resource exists, and that both resources are in the same region.", id)
}

// validPriority checks the settings of Spot Virtual Machines: https://learn.microsoft.com/azure/virtual-machines/error-codes-spot.
func validPriority(p *vmProperties, size *Size) error {
	switch {
	case !slices.Contains([]string{"", "Regular", "Low", "Spot"}, p.Priority):
		return badRequest("The value of parameter 'priority' is invalid.")
	case p.Priority != "Spot" && (p.EvictionPolicy != "" || p.BillingProfile != nil):
		return fail(http.StatusBadRequest, "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines",
			"Eviction policy can be set only on Azure Spot Virtual Machines.")
	case p.Priority != "Spot":
		return nil
	case !slices.Contains([]string{"", "Deallocate", "Delete"}, p.EvictionPolicy):
		return badRequest("The value of parameter 'evictionPolicy' is invalid.")
	case !size.Spot:
		return badRequest("The VM size %s does not support Azure Spot Virtual Machines.", size.Name)
	case p.AvailabilitySet != nil:
		return fail(http.StatusBadRequest, "AzureSpotVMNotSupportedInAvailabilitySet",
			"Azure Spot Virtual Machine is not supported in Availability Set.")
	case p.HostGroup != nil:
		return badRequest("Azure Spot Virtual Machine is not supported on dedicated hosts.")
	}
	return validPrice(p.BillingProfile, size)
}

func validPrice(p *billingProfile, size *Size) error {
	switch {
	case p == nil || p.MaxPrice == -1:
		return nil
	case p.MaxPrice <= 0:
		return fail(http.StatusBadRequest, "MaxPriceValueInvalid", "Supported values are -1, and decimals greater than zero.")
	case p.MaxPrice < size.price():
		return fail(http.StatusConflict, "SpotPriceGreaterThanProvidedMaxPrice",
			"Unable to perform operation since the provided max price %v USD is lower than the current spot price %v USD for Azure Spot VM size %s.",
			p.MaxPrice, size.price(), size.Name)
	}
	return nil
}

// validOptions checks what else a launch may have.
func (s *Server) validOptions(_ *request, doc *vmDocument) error {
	p, size := &doc.Properties, s.options.Catalog.size(doc.Properties.HardwareProfile.VMSize)
	if err := validPriority(p, size); err != nil {
		return err
	}
	switch {
	case p.CapacityReservation != nil && (p.Priority == "Spot" || p.HostGroup != nil || p.AvailabilitySet != nil):
		return badRequest("A capacity reservation is not supported for Spot VMs, dedicated hosts and availability sets.")
	case len(doc.Zones) > 0 && p.AvailabilitySet != nil:
		return badRequest("A virtual machine in an availability zone cannot be in an availability set.")
	}
	if p.Priority == "Spot" && p.EvictionPolicy == "" {
		p.EvictionPolicy = "Deallocate"
	}
	references := []*subResource{p.AvailabilitySet, p.ProximityPlacementGroup, p.HostGroup, p.VirtualMachineScaleSet}
	if p.CapacityReservation != nil {
		references = append(references, p.CapacityReservation.CapacityReservationGroup)
	}
	if d := p.StorageProfile.OSDisk.ManagedDisk; d != nil {
		references = append(references, d.DiskEncryptionSet)
	}
	for _, r := range references {
		if r != nil && !s.options.Catalog.has(r.ID) {
			return s.missing(r.ID)
		}
	}
	if doc.Identity != nil {
		for id := range doc.Identity.UserAssignedIdentities {
			if !s.options.Catalog.has(id) {
				return fail(http.StatusBadRequest, "FailedIdentityOperation",
					"Identity operation for resource failed: the identity '%s' was not found.", id)
			}
		}
	}
	return nil
}
