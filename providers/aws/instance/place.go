package instance

import (
	"context"
	"hash/fnv"
	"slices"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Place chooses the subnet: one that did not lack capacity lately, else the one whose shortage is
// the longest ago. Among equals the machine's own number decides, which spreads the machines of a
// template evenly over the zones.
func (d *Driver) Place(ctx context.Context, launch driver.Launch[*infrav1.AWSMachine]) (driver.Placement, error) {
	spec := &launch.Object.Spec
	r, err := d.in(ctx, spec.Region)
	if err != nil {
		return driver.Placement{}, err
	}
	here, err := r.candidates(ctx, spec, launch.FailureDomain)
	if err != nil {
		return driver.Placement{}, err
	}
	start := number(string(launch.OwnerUID)) + launch.Attempt - 1
	turned := make([]subnet, 0, len(here))
	for i := range here {
		turned = append(turned, here[(start+i)%len(here)])
	}
	chosen := slices.MinFunc(turned, func(a, b subnet) int {
		return r.capacity.at(offeringOf(spec, a.id)).Compare(r.capacity.at(offeringOf(spec, b.id)))
	})
	return driver.Placement{ID: chosen.id, FailureDomain: chosen.zone}, nil
}

func offeringOf(spec *infrav1.AWSMachineSpec, subnetID string) offering {
	return offering{instanceType: spec.InstanceType, spot: spec.Spot != nil, subnet: subnetID}
}

// number turns a text into a number that is spread evenly.
func number(text string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // A hash never fails.
	return int(h.Sum32())
}
