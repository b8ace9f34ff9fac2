package inventory

import (
	"slices"

	"millwright.dev/providers/driver"
)

// concerns says whether the machine has anything to do about the new View. A machine whose
// instance runs undisturbed is not woken because lists fail.
func (t *tracked) concerns(now View) bool {
	if !t.told.shows(now) {
		return true
	}
	if t.told.ListedAt.IsZero() && !now.ListedAt.IsZero() {
		// That the first list holds what the machine knows already is no news: to look again at once would be to look at an
		// object whose last write the cache does not show yet.
		return !now.Listed
	}
	return t.inTransition && driver.ClassOf(t.told.Err) != driver.ClassOf(now.Err)
}

// shows says whether both Views show the same instances.
func (v View) shows(other View) bool {
	return v.Known == other.Known && v.Instance.Equal(other.Instance) && slices.EqualFunc(v.Others, other.Others, driver.Instance.Equal)
}
