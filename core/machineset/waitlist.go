package machineset

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
)

// waitList remembers which sets wait for something outside of them, so that its event enqueues them and no others. A set must be
// added before it looks whether what it waits for has come, so that no event is missed. It is in memory
// alone: after a restart each set is looked at in any case. The zero value is ready for use.
type waitList struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]string
}

// await adds a set. It waits for one thing at a time.
func (w *waitList) await(set types.NamespacedName, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sets == nil {
		w.sets = map[types.NamespacedName]string{}
	}
	w.sets[set] = what
}

// remove forgets a set.
func (w *waitList) remove(set types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sets, set)
}

// wake removes the sets that wait for this, and returns them. Those that still have to wait add themselves again.
func (w *waitList) wake(what string) []types.NamespacedName {
	return w.wakeWhere(func(awaited string) bool { return awaited == what })
}

// wakeWhere is wake for all that matches.
func (w *waitList) wakeWhere(matches func(awaited string) bool) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var woken []types.NamespacedName
	for set, awaited := range w.sets {
		if matches(awaited) {
			woken = append(woken, set)
			delete(w.sets, set)
		}
	}
	return woken
}

// waitingForSlots are the sets that may continue after a change of a Machine: the end of a place that it has held, or of its being
// unhealthy. It may go on to count for the other. If the last that was seen of a Machine is not all there was, it may have been either.
func (r *Reconciler) waitingForSlots(before, after client.Object, unknown bool) []types.NamespacedName {
	machine, ok := before.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	later, ok := after.(*clusterv1.Machine)
	ends := func(counts func(*clusterv1.Machine) bool) bool { return counts(machine) && (!ok || !counts(later)) }
	if unknown || ends(holdsPlace) || ends(machines.FailedHealthCheck) {
		return r.forSlots.wake(machine.Namespace)
	}
	return nil
}

// holdsPlace reports whether a Machine takes up a place, as remediation.InFlight counts them: a replacement that is being deleted does not.
func holdsPlace(machine *clusterv1.Machine) bool {
	return remediation.Leaving(machine) || remediation.Coming(machine) && machine.DeletionTimestamp.IsZero()
}
