package instance

import (
	"context"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Places returns the subnets that the spec allows, with the failure domain that each is in.
func (d *Driver) Places(ctx context.Context, launch driver.Launch[*infrav1.AWSMachine]) ([]driver.Candidate, error) {
	spec := &launch.Object.Spec
	r, err := d.in(ctx, spec.Region)
	if err != nil {
		return nil, err
	}
	here, err := r.candidates(ctx, spec, launch.FailureDomain)
	if err != nil {
		return nil, err
	}
	places := make([]driver.Candidate, 0, len(here))
	for _, s := range here {
		place := driver.Placement{ID: s.id, FailureDomain: s.zone}
		places = append(places, driver.Candidate{Placement: place, ShortSince: r.capacity.at(offeringOf(spec, place))})
	}
	return places, nil
}

func offeringOf(spec *infrav1.AWSMachineSpec, place driver.Placement) offering {
	return offering{instanceType: spec.InstanceType, spot: spec.Spot != nil, zone: place.FailureDomain, subnet: place.ID}
}
