package compute

import (
	"encoding/json"
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/simulator"
)

// Options are the settings of a simulated cloud. The zero value is one with the project millwright-test that answers at once.
type Options struct {
	// Projects that exist at first; millwright-test when empty.
	Projects []string
	// Tokens that are accepted; every bearer token when empty. The token endpoint issues the first, or "token-of-the-simulator".
	Tokens []string
	// Access knows the principals of tokens that Tokens does not have, and which project they may use; every project when nil.
	Access Access
	// Delays of what takes time; all are really zero when zero.
	Delays Delays
	// Catalog is what exists at first; DefaultCatalog when nil.
	Catalog *Catalog
	// RatePerMinute are the rate quotas of each project by group (see the README); groups that are not in it have none.
	RatePerMinute map[string]int
	// Quotas are the limits of quotas by name, such as N2_CPUS, or by region and name, such as us-central1/N2_CPUS; others have none.
	Quotas map[string]int
	// Clock drives every delay; the real one when nil.
	Clock clock.WithDelayedExecution
	// Latency is how long every answer takes at least, in real time whatever the Clock.
	Latency time.Duration
	// Machines boots instances; none boot when nil.
	Machines simulator.Machines
}

// Access returns the principals of tokens and which project they may use: see the package iam.
type Access interface {
	// Principal returns the owner of a token; false if it is none.
	Principal(token string) (string, bool)
	// Allowed returns whether a principal may use a project.
	Allowed(principal, project string) bool
}

// Delays are how long what happens in the cloud takes.
type Delays struct {
	// Pending is how long a new operation waits before it begins. Until then an instance that it creates is in no answer.
	Pending time.Duration `json:"pending"`
	// Provisioning and Staging are how long a new instance is in these states.
	Provisioning time.Duration `json:"provisioning"`
	// Staging follows Provisioning.
	Staging time.Duration `json:"staging"`
	// Stopping is how long an instance stops, whether it is then deleted or stays.
	Stopping time.Duration `json:"stopping"`
	// Listing is how long lists show neither a new instance nor that one is gone.
	Listing time.Duration `json:"listing"`
	// Forget is how long an operation that has ended is known; two weeks when zero.
	Forget time.Duration `json:"forget"`
}

// DefaultRates are the rate quotas that the documentation has as defaults, as far as they concern the methods simulated here.
func DefaultRates() map[string]int {
	return map[string]int{GroupMutate: 1500, GroupRead: 1500, GroupList: 1500, GroupOperationRead: 1500}
}

func (o Options) withDefaults() Options {
	if len(o.Projects) == 0 {
		o.Projects = []string{"millwright-test"}
	}
	if o.Delays.Forget == 0 {
		o.Delays.Forget = 14 * 24 * time.Hour
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Catalog == nil {
		o.Catalog = DefaultCatalog()
	}
	return o
}

// catalogProjects are those that the catalog has something in.
func (o Options) catalogProjects() (all []string) {
	for _, i := range o.Catalog.Images {
		all = append(all, i.Project)
	}
	for _, s := range o.Catalog.Subnetworks {
		if s.Project != "" {
			all = append(all, s.Project)
		}
	}
	return all
}

// Failure is why an operation fails.
type Failure struct {
	// Code such as ZONE_RESOURCE_POOL_EXHAUSTED.
	Code string `json:"code"`
	// Message is optional.
	Message string `json:"message,omitempty"`

	details []json.RawMessage
}
