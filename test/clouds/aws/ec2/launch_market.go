package ec2

import (
	"regexp"
	"strconv"
)

var price = regexp.MustCompile(`^[0-9]*\.?[0-9]+$`)

// readMarket reads how the instances are bought: on demand, on spot, or in a Capacity Block.
func readMarket(_ *Server, p params, l *launch) error {
	g := p.group("InstanceMarketOptions")
	switch g["MarketType"] {
	case "":
		if len(g) > 0 {
			return fail("InvalidParameterCombination", "Spot options may only be used with the market type spot")
		}
		return nil
	case "capacity-block":
		if len(g) > 1 {
			return fail("InvalidParameterCombination", "Spot options may only be used with the market type spot")
		}
		l.capacityBlock = true
		return nil
	case "spot":
		l.spot = true
	default:
		return invalidValue(g["MarketType"], "InstanceMarketOptions.MarketType", "Only spot and capacity-block are simulated.")
	}
	if !l.kind.Spot {
		return fail("InvalidParameterCombination", "The instance type %s is not sold as a Spot Instance", l.kind.Name)
	}
	if l.placement.tenancy == tenancyHost {
		return fail("InvalidParameterCombination", "Spot Instances do not support the tenancy host")
	}
	limit := g["SpotOptions.MaxPrice"]
	if limit == "" {
		return nil
	}
	value, err := strconv.ParseFloat(limit, 64)
	if err != nil || !price.MatchString(limit) || value <= 0 {
		return invalidValue(limit, "InstanceMarketOptions.SpotOptions.MaxPrice", "Must be a price in US dollars.")
	}
	if value < l.kind.SpotPrice {
		return fail(
			"SpotMaxPriceTooLow",
			"Your Spot request price of %s is lower than the minimum required Spot request fulfillment price of %g.",
			limit,
			l.kind.SpotPrice,
		)
	}
	return nil
}

// capacityRequest is what a launch requests of Capacity Reservations.
type capacityRequest struct {
	preference, id, group string
	// reservation is what the instances run in; nil for capacity on demand.
	reservation *CapacityReservation
}

// readCapacity reads the CapacityReservationSpecification and finds the reservation that is used, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html.
func readCapacity(s *Server, p params, l *launch) error {
	g := p.group("CapacityReservationSpecification")
	target := g.group("CapacityReservationTarget")
	l.capacity = capacityRequest{
		preference: g["CapacityReservationPreference"], id: target["CapacityReservationId"], group: target["CapacityReservationResourceGroupArn"],
	}
	c := &l.capacity
	targeted := c.id != "" || c.group != ""
	switch {
	case c.preference != "" && !contains([]string{"open", "none", "capacity-reservations-only"}, c.preference):
		return invalidValue(c.preference, "capacityReservationPreference", "Must be open, none or capacity-reservations-only.")
	case c.id != "" && c.group != "":
		return fail("InvalidParameterCombination", "Specify either a Capacity Reservation ID or a resource group ARN")
	case targeted && (c.preference == "open" || c.preference == "none"):
		return fail("InvalidParameterCombination",
			"The preference '%s' cannot be combined with a Capacity Reservation target", c.preference)
	case l.spot && targeted:
		return fail("InvalidParameterCombination", "A Capacity Reservation cannot be targeted by a Spot Instance request")
	case l.capacityBlock && c.id == "":
		return fail("InvalidParameterCombination", "The market type capacity-block requires the ID of a Capacity Block")
	}
	if !targeted && c.preference == "" {
		c.preference = "open"
	}
	if c.id != "" {
		return s.targetReservation(l)
	}
	return s.fittingReservation(l)
}

// targetReservation checks the one reservation that a launch names.
func (s *Server) targetReservation(l *launch) error {
	c := &l.capacity
	if !wellFormed(c.id, "cr") {
		return fail("InvalidCapacityReservationId.Malformed", `Invalid id: "%s" (expecting "cr-...")`, c.id)
	}
	found := find(s.catalog.CapacityReservations, func(r *CapacityReservation) bool { return r.ID == c.id })
	switch {
	case found == nil:
		return fail("InvalidCapacityReservationId.NotFound", "The Capacity Reservation '%s' does not exist", c.id)
	case found.State != "active":
		return fail("InvalidCapacityReservationState", "The Capacity Reservation '%s' is in the state %s, not active", c.id, found.State)
	case found.CapacityBlock != l.capacityBlock:
		return fail("InvalidParameterCombination", "The market type does not match that of the Capacity Reservation '%s'", c.id)
	case !found.fits(l):
		return fail("InvalidParameterCombination",
			"Instance type, tenancy or Availability Zone do not match those of the Capacity Reservation '%s'", c.id)
	case s.left(found) < l.min:
		return fail("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible capacity.")
	}
	c.reservation = found
	return nil
}

// fittingReservation chooses an open reservation, or one of a group; without any the launch is on demand, unless it may not.
func (s *Server) fittingReservation(l *launch) error {
	c := &l.capacity
	if c.preference == "none" || l.spot {
		return nil
	}
	c.reservation = find(s.catalog.CapacityReservations, func(r *CapacityReservation) bool {
		eligible := r.Open
		if c.group != "" {
			eligible = r.ResourceGroupARN == c.group
		}
		return eligible && r.State == "active" && !r.CapacityBlock && r.fits(l) && s.left(r) >= l.min
	})
	if c.reservation == nil && c.preference == "capacity-reservations-only" {
		return fail("ReservationCapacityExceeded", "There is no Capacity Reservation with matching attributes and available capacity.")
	}
	return nil
}

func (r *CapacityReservation) fits(l *launch) bool {
	return r.InstanceType == l.kind.Name && r.AvailabilityZone == l.zone.AvailabilityZone && l.placement.tenancy == "default"
}

// left is how many instances the reservation has room for.
func (s *Server) left(r *CapacityReservation) int {
	left := r.Count
	for _, i := range s.instances {
		if i.launch.capacity.reservation != nil && i.launch.capacity.reservation.ID == r.ID && i.state != terminated {
			left--
		}
	}
	return left
}
