package inventory

import (
	"slices"

	"millwright.dev/providers/driver"
)

// concerns returns whether the machine has to be reconciled for the new View. A machine whose
// instance runs undisturbed is not woken because lists fail.
func (t *tracked) concerns(now View) bool {
	if !t.seen.shows(now) {
		return true
	}
	if t.seen.ListedAt.IsZero() && !now.ListedAt.IsZero() {
		// That the first list holds what the machine knows already is no change: to look again at once would be to look at an
		// object whose last write the cache does not show yet.
		return !now.Listed
	}
	return t.inTransition && driver.ClassOf(t.seen.Err) != driver.ClassOf(now.Err)
}

// shows returns whether both Views show the same instances.
func (v View) shows(other View) bool {
	return v.Known == other.Known && v.Instance.Equal(other.Instance) && slices.EqualFunc(v.Others, other.Others, driver.Instance.Equal)
}
