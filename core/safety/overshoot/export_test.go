package overshoot

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ForSets makes the reconciler one for MachineSets.
func (r *Reconciler) ForSets() *Reconciler {
	r.ofSets = true
	return r
}

// Came notes that a Machine of an object has come.
func (r *Reconciler) Came(key client.ObjectKey, at time.Time) { r.memory.came(key, at) }
