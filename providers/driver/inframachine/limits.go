package inframachine

import (
	"maps"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/limit"
)

// limits returns the limiter of all calls to the cloud, and the driver whose calls it limits. Launches are admitted one by one before they
// are recorded, so the limiter does not hold up Create.
func (r *Reconciler[M]) limits() (*limit.Limiter, driver.Driver[M]) {
	rates := maps.Clone(r.traits.Rates)
	if r.Options.Launches != nil {
		if rates == nil {
			rates = map[driver.CallKind]driver.Rate{}
		}
		rates[driver.CallCreate] = *r.Options.Launches
	}
	limiter := limit.New(r.Clock, rates).SpreadBy(r.Options.Random)
	return limiter, limit.Driver(r.Driver, limiter)
}

// Limiter returns the limiter of all calls to the cloud, for those of other controllers. It is nil before SetupWithManager.
func (r *Reconciler[M]) Limiter() *limit.Limiter { return r.limiter }

// sawInstances remembers the shortages that a list shows.
func (r *Reconciler[M]) sawInstances(in driver.Scope, instances []driver.Instance) {
	r.shortages.SawInstances(r.cloud.LimitScope(in), instances)
}
