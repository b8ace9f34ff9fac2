package machinehealth

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// OnRound has f called at each round.
func OnRound(r *Reconciler, f func(reconcile.Request)) { r.onRound = f }

// Recheck sets how often it is looked whether a request of external remediation is there.
func Recheck(r *Reconciler, after time.Duration) { r.recheck = after }
