package machinehealth

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OnRound has f called at each round.
func OnRound(r *Reconciler, f func(reconcile.Request)) { r.onRound = f }

// Recheck sets how often it is looked whether a request of external remediation is there, and how long the first reading of its kind may
// take until that is reported.
func Recheck(r *Reconciler, after, grace time.Duration) { r.recheck, r.requests.grace = after, grace }
