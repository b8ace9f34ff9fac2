// Package providers runs the conformance suite on our providers, on simulated clouds, and keeps the reports in docs/conformance.
// See README.md.
package providers

import (
	"context"
	"maps"
	"net/http"
	"path"
	"slices"

	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/sandbox"
)

// asked is a Probe of a function.
type asked func(ctx context.Context) ([]probe.Machine, error)

// Machines implements probe.Probe.
func (a asked) Machines(ctx context.Context) ([]probe.Machine, error) { return a(ctx) }

// probeOf reads a simulated cloud by its control interface, not by the API that the provider uses.
func probeOf(c *sandbox.Cloud) probe.Probe {
	switch c.Name {
	case "aws":
		return asked(func(ctx context.Context) ([]probe.Machine, error) { return instancesOfEC2(ctx, simclient.New(c.URL())) })
	case "azure":
		return asked(func(ctx context.Context) ([]probe.Machine, error) { return machinesOfAzure(ctx, c) })
	default:
		return asked(func(ctx context.Context) ([]probe.Machine, error) { return instancesOfGCP(ctx, c) })
	}
}

func instancesOfEC2(ctx context.Context, ec2 *simclient.Client) ([]probe.Machine, error) {
	instances, err := ec2.LiveInstances(ctx)
	if err != nil {
		return nil, err
	}
	var machines []probe.Machine
	for _, i := range instances {
		machines = append(machines, probe.Machine{
			ID: i.ID, ProviderID: "aws:///" + i.AvailabilityZone + "/" + i.ID, Running: i.State == "pending" || i.State == "running",
			FailureDomain: i.AvailabilityZone, Marks: values(i.Tags),
		})
	}
	return machines, nil
}

func machinesOfAzure(ctx context.Context, c *sandbox.Cloud) ([]probe.Machine, error) {
	var all []arm.Resource
	if err := c.Client().Do(ctx, http.MethodGet, "resources", nil, &all); err != nil {
		return nil, err
	}
	var machines []probe.Machine
	for _, r := range all {
		if r.Kind != "virtualMachines" {
			continue
		}
		machines = append(machines, probe.Machine{
			ID: r.ID, ProviderID: "azure://" + r.ID, Running: r.State != "Deleting", FailureDomain: r.Zone, Marks: append(values(r.Tags), r.Name),
		})
	}
	return machines, nil
}

func instancesOfGCP(ctx context.Context, c *sandbox.Cloud) ([]probe.Machine, error) {
	const project = "my-project"
	var all []compute.Instance
	if err := c.Client().Do(ctx, http.MethodGet, "projects/"+project+"/instances", nil, &all); err != nil {
		return nil, err
	}
	var machines []probe.Machine
	for _, i := range all {
		zone := path.Base(i.Zone)
		ending := slices.Contains([]string{"STOPPING", "TERMINATED", "SUSPENDED", "SUSPENDING"}, i.Status)
		machines = append(machines, probe.Machine{
			ID: i.Name, ProviderID: "gce://" + project + "/" + zone + "/" + i.Name, Running: !ending, FailureDomain: zone,
			Marks: append(values(i.Labels), i.Name),
		})
	}
	return machines, nil
}

func values(of map[string]string) []string { return slices.Collect(maps.Values(of)) }
