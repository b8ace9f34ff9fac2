package instance

import (
	"cmp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// Purchase options in messages and metrics.
const (
	marketOnDemand      = "on-demand"
	marketSpot          = "spot"
	marketCapacityBlock = "capacity-block"
	// marketReservations is whatever Capacity Reservation fits.
	marketReservations = "reservations"
)

// marketOf is what EC2 has capacity of for such a launch, beside its type and zone: the purchase option, and what it is confined to.
// A Capacity Reservation that is full, dedicated hardware or a placement group that has no room proves nothing about anything else.
func marketOf(spec *infrav1.AWSMachineSpec) string {
	market := marketOnDemand
	switch {
	case spec.Spot != nil:
		market = marketSpot
	case spec.MarketType == infrav1.MarketTypeCapacityBlock:
		market = marketCapacityBlock
	}
	if c := spec.CapacityReservation; c != nil {
		market = cmp.Or(reservationOf(c.ID, c.ResourceGroupARN, c.Preference == infrav1.CapacityReservationOnly), market)
	}
	if p := spec.Placement; p != nil {
		market = confined(market, string(p.Tenancy), cmp.Or(p.HostID, p.HostResourceGroupARN), p.GroupName)
	}
	return market
}

// marketOfInstance is marketOf as far as EC2 reports it of an instance: not which host was asked for.
func marketOfInstance(i types.Instance) string {
	market := marketOnDemand
	switch i.InstanceLifecycle {
	case types.InstanceLifecycleTypeSpot:
		market = marketSpot
	case types.InstanceLifecycleTypeCapacityBlock:
		market = marketCapacityBlock
	}
	if c := i.CapacityReservationSpecification; c != nil {
		id, group := "", ""
		if t := c.CapacityReservationTarget; t != nil {
			id, group = aws.ToString(t.CapacityReservationId), aws.ToString(t.CapacityReservationResourceGroupArn)
		}
		only := c.CapacityReservationPreference == types.CapacityReservationPreferenceCapacityReservationsOnly
		market = cmp.Or(reservationOf(id, group, only), market)
	}
	if p := i.Placement; p != nil {
		market = confined(market, string(p.Tenancy), "", aws.ToString(p.GroupName))
	}
	return market
}

// reservationOf names the only reserved capacity that a launch may have; empty if it may have other, as with a group without preference.
func reservationOf(id, group string, only bool) string {
	switch {
	case id != "":
		return id
	case only && group != "":
		return marketReservations + " of " + group[strings.LastIndex(group, "/")+1:]
	case only:
		return marketReservations
	}
	return ""
}

// confined adds to a market on what hardware, and beside what, the instance has to run.
func confined(market, tenancy, host, group string) string {
	switch {
	case host != "":
		market += " on " + host[strings.LastIndex(host, "/")+1:]
	case tenancy != "" && tenancy != string(types.TenancyDefault):
		market += " on " + tenancy + " hardware"
	}
	if group != "" {
		market += " in group " + group
	}
	return market
}
