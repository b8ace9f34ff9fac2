package machinehealth

import "sigs.k8s.io/controller-runtime/pkg/reconcile"

// OnRound has f called at each round.
func OnRound(r *Reconciler, f func(reconcile.Request)) { r.onRound = f }
