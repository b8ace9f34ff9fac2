package arm

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/simulator"
)

// Options are the settings of a simulated tenant. The zero value has one subscription that answers at once.
type Options struct {
	// Tokens are the accepted bearer tokens; all of them when empty.
	Tokens []string
	// Authorize returns the caller with a token, and the code with which the call is refused, if it is; entra.Front has one. Without it
	// a caller with one of Tokens may do everything.
	Authorize func(token, subscription string) (caller, code string)
	// Delays of what takes long.
	Delays Delays
	// Throttles limits requests by subscription and kind, those of each caller alone: <subscription>/read, /write, /delete; "*" is the
	// bucket of each that is not named. See https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling.
	Throttles map[string]simulator.Throttle
	// Catalog is what exists beforehand; DefaultCatalog when nil.
	Catalog *Catalog
	// Clock drives every delay; the real one when nil.
	Clock clock.WithDelayedExecution
	// Seed makes the generated IDs the same in each run; they are random when zero.
	Seed uint64
	// PageSize is how many items a list returns at once; 50 when zero.
	PageSize int
	// Latency is how long every answer takes at least, in real time whatever the clock.
	Latency time.Duration
	// RefusedLaunchesLeaveInterfaces has a launch that is refused for lack of capacity at once leave the interface that it had created before.
	RefusedLaunchesLeaveInterfaces bool
	// OperationHost is the host in the URLs of operations; that of the call when empty.
	OperationHost string
	// Machines boots virtual machines; none boot when nil.
	Machines simulator.Machines
}

// Delays are how long the tenant takes; all of them may be changed while it runs and hold for what starts afterwards.
type Delays struct {
	// Create is the time from the PUT of a virtual machine to provisioning state Succeeded or Failed.
	Create time.Duration `json:"create"`
	// Delete is the time from the DELETE of a virtual machine until it is gone.
	Delete time.Duration `json:"delete"`
	// Power is the time that a change of power takes.
	Power time.Duration `json:"power"`
	// Interface is the time from the PUT of an interface to its provisioning state Succeeded.
	Interface time.Duration `json:"interface"`
	// List is the time until lists have what was created; a read by its name has it at once.
	List time.Duration `json:"list"`
	// Part is the time until a deleted disk, interface or address is gone.
	Part time.Duration `json:"part"`
}

// DefaultThrottles are the token buckets of a subscription that Azure documents.
func DefaultThrottles() map[string]simulator.Throttle {
	limits := map[string]simulator.Throttle{}
	limits["*"] = simulator.Throttle{Burst: 250, RefillPerSecond: 25}
	for _, verb := range []string{verbWrite, verbDelete} {
		limits[DefaultSubscription+"/"+verb] = simulator.Throttle{Burst: 200, RefillPerSecond: 10}
	}
	return limits
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Catalog == nil {
		o.Catalog = DefaultCatalog()
	}
	if o.PageSize == 0 {
		o.PageSize = 50
	}
	return o
}

func (o Options) hasSubscription(id string) bool {
	return slices.ContainsFunc(o.Catalog.Groups, func(g Group) bool { return strings.EqualFold(g.Subscription, id) })
}
