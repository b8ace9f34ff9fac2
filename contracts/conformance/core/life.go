package core

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"

	"millwright.dev/contracts/conformance/lease"
)

// life shows other runs of the suite that this one is alive.
func (e *Env) life() lease.Run {
	return lease.Run{Client: e.Client, Suite: "core", ID: e.Run, Namespace: e.Namespace, Logf: e.logf}
}

// lease returns the Lease of the run.
func (e *Env) lease() *coordinationv1.Lease { return e.life().Lease() }

// live creates the Lease of the run and renews it until stop is called.
func live(ctx context.Context, env *Env) (stop func(), err error) { return env.life().Live(ctx) }

// others returns the IDs of other runs that are alive, and the Leases of those that are dead.
func others(ctx context.Context, env *Env) (alive map[string]bool, dead []coordinationv1.Lease, err error) {
	return env.life().Others(ctx)
}
