package sandbox

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"millwright.dev/test/clouds/simulator"
)

// Infrastructure is the API group of all providers.
var Infrastructure = schema.GroupVersion{Group: "infrastructure.millwright.dev", Version: "v1alpha1"}

// Cloud is a simulated cloud with its provider.
type Cloud struct {
	// Name is aws, azure or gcp: of the provider's program and manager, its manifest and its samples.
	Name string
	// Title is the name of the API that is simulated.
	Title string
	// Machine is the kind of the provider's machines.
	Machine string
	// Deployment is the name of the MachineDeployment in the samples.
	Deployment string
	// SizeField is the field of the machine template with the size of machines, and OtherSize a value other than the sample's.
	SizeField, OtherSize string
	// Manager is the provider's; nil before it is installed.
	Manager *Manager

	simulator *runningCloud
	// simulatorFile is the simulator's program.
	simulatorFile string
	// simulatorArgs are the simulator's own flags.
	simulatorArgs func(Delays) []string
	// provider returns the provider's own flags and environment for a simulator that serves at url.
	provider func(s *Sandbox, url string) (args, environment []string)
	// tokens is true if the provider gets access tokens as its machine would, from Sandbox.tokens.
	tokens bool
	// leftovers describes what costs money.
	leftovers func(context.Context, *Cloud) ([]string, error)
}

// newClouds returns the clouds of these names.
func newClouds(names []string) ([]*Cloud, error) {
	makers := map[string]func() *Cloud{"aws": newAWS, "azure": newAzure, "gcp": newGCP}
	clouds := make([]*Cloud, 0, len(names))
	for _, name := range names {
		if makers[name] == nil {
			return nil, fmt.Errorf("there is no cloud %q: give aws, azure or gcp", name)
		}
		clouds = append(clouds, makers[name]())
	}
	return clouds, nil
}

// Cloud returns the cloud of the name; nil if the sandbox has none.
func (s *Sandbox) Cloud(name string) *Cloud {
	for _, c := range s.Clouds {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// URL is the endpoint of the simulated API.
func (c *Cloud) URL() string { return c.simulator.url }

// Left describes what costs money there.
func (c *Cloud) Left(ctx context.Context) ([]string, error) { return c.leftovers(ctx, c) }

// Client controls the simulator.
func (c *Cloud) Client() *simulator.Client { return simulator.NewClient(c.URL()) }

// Template is the kind of the provider's machine templates.
func (c *Cloud) Template() string { return c.Machine + "Template" }

// manifest is the path of the provider's install manifest.
func (c *Cloud) manifest() string {
	return "out/infrastructure-" + c.Name + "/infrastructure-components.yaml"
}

// sample is the path of a file of the cloud's samples.
func (c *Cloud) sample(file string) string { return "config/samples/" + c.Name + "/" + file }

// templateFile is the sample with the machine template.
func (c *Cloud) templateFile() string { return strings.ToLower(c.Template()) + ".yaml" }
