package instance

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
)

// marketSpot is the purchase option of Spot Virtual Machines.
const marketSpot = "spot"

// marketOf is what else capacity is scarce of for such a launch: the purchase option, or what it is confined to. A reservation, a host
// group or a set that has no room proves nothing about anything else.
func marketOf(spec *infrav1.AzureMachineSpec) string {
	var p infrav1.Placement
	if spec.Placement != nil {
		p = *spec.Placement
	}
	return market(spec.Spot != nil, spec.CapacityReservationGroupID, p.HostGroupID, p.ProximityPlacementGroupID, p.AvailabilitySetID)
}

// marketOfMachine is marketOf as far as Azure reports it of a machine: all of it.
func marketOfMachine(p *armcompute.VirtualMachineProperties) string {
	reservation := ""
	if p.CapacityReservation != nil {
		reservation = idOf(p.CapacityReservation.CapacityReservationGroup)
	}
	spot := value(p.Priority) == armcompute.VirtualMachinePriorityTypesSpot
	return market(spot, reservation, idOf(p.HostGroup), idOf(p.ProximityPlacementGroup), idOf(p.AvailabilitySet))
}

// market is spot, or the first of the resources that there is, in lower case, since Azure may write their IDs as it likes.
func market(spot bool, confinedTo ...string) string {
	if spot {
		return marketSpot
	}
	for _, id := range confinedTo {
		if id != "" {
			return strings.ToLower(id)
		}
	}
	return ""
}

func idOf(r *armcompute.SubResource) string {
	if r == nil {
		return ""
	}
	return value(r.ID)
}
