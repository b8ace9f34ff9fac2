package instance

import (
	"context"
	"slices"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Places returns the subnets that the spec allows, each with every instance type that it allows.
func (d *Driver) Places(ctx context.Context, launch driver.Launch[*infrav1.AWSMachine]) ([]driver.Candidate, error) {
	spec := &normalized(launch.Object).Spec
	r, err := d.in(ctx, launch.Scope)
	if err != nil {
		return nil, err
	}
	here, err := r.candidates(ctx, spec, launch.FailureDomain)
	if err != nil {
		return nil, err
	}
	var places []driver.Candidate
	for rank, instanceType := range instanceTypes(spec) {
		for _, s := range here {
			places = append(places, driver.Candidate{Rank: rank, Terms: termsOf(spec), Placement: driver.Placement{
				ID: s.id, FailureDomain: s.zone, InstanceType: instanceType, Market: marketOf(spec),
			}})
		}
	}
	return places, nil
}

// termsOf is the most that the spec pays for a spot instance.
func termsOf(spec *infrav1.AWSMachineSpec) string {
	if spec.Spot == nil || spec.Spot.MaxPrice == "" {
		return ""
	}
	return "for " + spec.Spot.MaxPrice + " USD an hour at most"
}

// instanceTypes are the types that the spec allows, the first choice first.
func instanceTypes(spec *infrav1.AWSMachineSpec) []string {
	return slices.Concat([]string{spec.InstanceType}, spec.FallbackInstanceTypes)
}
