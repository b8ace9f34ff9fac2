package inframachine

import (
	"context"
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

// reportShortage remembers that a launch lacked capacity, and returns the error with what was asked for and where it lacked lately.
func (r *Reconciler[M]) reportShortage(ctx context.Context, s *scope[M], err error) error {
	if s.allowed == nil { // The launch was decided on before.
		s.completeRequest()
		s.allowed, _ = r.allowedPlaces(ctx, s) // Else its terms and its subnet are not known.
	}
	in, candidate := r.cloud.LimitScope(s.handle.Scope), driver.Candidate{Placement: s.launched.placement()}
	for _, c := range s.allowed {
		if c.ID == candidate.ID && c.InstanceType == candidate.InstanceType && c.Market == candidate.Market {
			candidate.Terms, candidate.Subnet = c.Terms, c.Subnet
		}
	}
	r.shortages.Report(in, candidate, err)
	return r.shortages.Explain(in, candidate, err)
}

// sawInstances remembers the shortages that a list shows.
func (r *Reconciler[M]) sawInstances(in driver.Scope, instances []driver.Instance) {
	r.shortages.SawInstances(r.cloud.LimitScope(in), instances)
}
