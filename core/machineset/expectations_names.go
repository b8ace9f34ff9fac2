package machineset

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// reserve takes in reserved names. Those of existing Machines are in use already.
func (e *expectations) reserve(set types.UID, seed string, names []reservedName, machines []*clusterv1.Machine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.of(set)
	// The annotation has one seed, and those before it do not come back.
	maps.DeleteFunc(expected.seeds, func(before string, _ bool) bool {
		return !slices.ContainsFunc(expected.open, func(reserved reservedName) bool { return reserved.seed == before })
	})
	expected.seeds[seed] = true
	expected.open = append(expected.open, names...)
	expected.trust(machines)
}

// knowsSeed reports whether a reservation was taken in before. What is left of it is known better here than from the annotation.
func (e *expectations) knowsSeed(set types.UID, seed string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of(set).seeds[seed]
}

// openNames are the reserved names that no Machine is known to have or to have had, in their order.
func (e *expectations) openNames(set types.UID) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, reserved := range e.of(set).open {
		names = append(names, reserved.name)
	}
	return names
}

// stillOpen returns the ordinals that remain of a reservation, and whether it is time to write that: when a Machine
// with one of the names is being deleted, or is about to be, or is gone without that, since a user has removed it by force.
func (e *expectations) stillOpen(
	set types.UID,
	seed string,
	names []reservedName,
	machines []*clusterv1.Machine,
	victims map[types.UID]bool,
) (left []int, retire bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.of(set)
	byName := make(map[string]*clusterv1.Machine, len(machines))
	for _, machine := range machines {
		byName[machine.Name] = machine
	}
	for _, reserved := range names {
		machine, exists := byName[reserved.name]
		open := !expected.seeds[seed] || expected.isOpen(reserved)
		if exists {
			retire = retire || !machine.DeletionTimestamp.IsZero() || victims[machine.UID]
			continue
		}
		if open {
			left = append(left, reserved.ordinal)
		}
		retire = retire || !open
	}
	return left, retire
}

// isOpen reports whether the name with this seed and ordinal is open. It may be another one by now, with another template.
func (a *setExpectations) isOpen(name reservedName) bool {
	return slices.ContainsFunc(a.open, func(open reservedName) bool { return open.seed == name.seed && open.ordinal == name.ordinal })
}

// taken takes a name out of use that something else has, or a Machine of the set that is not known yet: the API server
// is asked.
func (e *expectations) taken(set types.UID, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	expected := e.of(set)
	expected.use(name)
	expected.verified = false
}

// trust takes the names of Machines that exist out of those that are open.
func (a *setExpectations) trust(machines []*clusterv1.Machine) {
	if len(a.open) == 0 {
		return
	}
	exists := make(map[string]bool, len(machines))
	for _, machine := range machines {
		exists[machine.Name] = true
	}
	a.open = slices.DeleteFunc(a.open, func(reserved reservedName) bool { return exists[reserved.name] })
}

// use takes one name out of those that are open.
func (a *setExpectations) use(name string) {
	a.open = slices.DeleteFunc(a.open, func(reserved reservedName) bool { return reserved.name == name })
}
