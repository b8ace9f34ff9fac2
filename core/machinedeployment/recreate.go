package machinedeployment

import "fmt"

// recreateAll lets all outdated Machines go at once, and makes new ones when the last of them has gone.
func (d *draft) recreateAll() {
	present := 0
	for _, set := range d.outdated() {
		d.resize(set, 0, "all outdated Machines go before new ones are made")
		present += set.existing()
	}
	current := d.current()
	switch {
	case present == 0 || current.desired > d.replicas:
		d.resize(current, d.replicas, fmt.Sprintf("%d replicas are wanted", d.replicas))
	default:
		// It keeps the Machines that it has, but gets no more.
	}
}
