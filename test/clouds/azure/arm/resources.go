package arm

import (
	"slices"
	"strings"
	"time"
)

// named is what every resource has.
type named struct {
	id, name            string
	subscription, group string
	sequence            int
	etag                string
	tags                map[string]string
	created             time.Time
	// goneAt is when a deletion ends; zero if there is none.
	goneAt time.Time
	// ending is the operation of the deletion, and endFailure how it fails; nil if it succeeds.
	ending     *operation
	endFailure *errorBody
}

// deletionFailed ends a deletion that fails, and returns false for any other: the resource stays.
func (s *Server) deletionFailed(n *named) bool {
	if n.endFailure == nil {
		return false
	}
	s.finish(n.ending, n.endFailure)
	n.goneAt, n.ending, n.endFailure = time.Time{}, nil, nil
	return true
}

func (n *named) in(subscription, group string) bool {
	return strings.EqualFold(n.subscription, subscription) && (group == "" || strings.EqualFold(n.group, group))
}

func (s *Server) newNamed(provider, kind, subscription, group, name string, tags map[string]string) named {
	s.sequence++
	return named{
		id: resourceID(subscription, group, provider, kind, name), name: name, subscription: subscription, group: group,
		sequence: s.sequence, etag: `W/"` + s.ids.uuid() + `"`, tags: tags, created: s.clock.Now(),
	}
}

// machine is a virtual machine.
type machine struct {
	named
	document vmDocument
	vmID     string
	// state of provisioning, and power; failure is why the former is Failed.
	state, power string
	failure      *errorBody
	// silent is true while the run time status says nothing.
	silent bool
	// doom is the failure with which provisioning will end; changeAt is when it does, or when a change of power is done.
	doom     *errorBody
	changeAt time.Time
	next     string
	evicted  bool
	bootedAt time.Time
	nics     []*networkInterface
	disks    []*disk
	cascade  map[string]bool
	creating *operation
}

type networkInterface struct {
	named
	document     interfaceConfig
	subnet       *Subnet
	ips          []ipState
	mac          string
	primary      bool
	machine      *machine
	address      *publicAddress
	deletePublic bool
	// failed is true if its creation has failed.
	failed bool
	// readyAt is when its creation ends.
	readyAt time.Time
	// reserved is the ID of the machine that it was to have in a launch that was refused, until a time.
	reserved      string
	reservedUntil time.Time
}

// ipState is an address of an interface.
type ipState struct {
	name, address, version string
	static                 bool
}

// private is the first address.
func (n *networkInterface) private() string { return n.ips[0].address }

type publicAddress struct {
	named
	ip  string
	nic *networkInterface
}

type disk struct {
	named
	zones   []string
	sizeGiB int32
	sku     string
	os      bool
	machine *machine
}

// Provisioning states and states of power.
const (
	stateCreating  = "Creating"
	stateUpdating  = "Updating"
	stateSucceeded = "Succeeded"
	stateFailed    = "Failed"
	stateDeleting  = "Deleting"

	powerStarting     = "starting"
	powerRunning      = "running"
	powerStopping     = "stopping"
	powerStopped      = "stopped"
	powerDeallocating = "deallocating"
	powerDeallocated  = "deallocated"
)

func sorted[T any](all map[string]T, keep func(T) bool, sequence func(T) int) []T {
	var out []T
	for _, r := range all {
		if keep(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return sequence(a) - sequence(b) })
	return out
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.0000000Z") }

// free detaches what the machine has: what has the deleteOption Delete is deleted, the rest stays without an owner.
func (s *Server) free(m *machine, now time.Time) {
	for _, n := range m.nics {
		n.machine = nil
		if m.cascade[n.id] {
			n.goneAt = now
		}
	}
	for _, d := range m.disks {
		d.machine = nil
		if m.cascade[d.id] {
			d.goneAt = now
		}
	}
	s.count(m, -1)
	m.nics, m.disks = nil, nil
}

// removeNIC deletes an interface, and its public address if that is deleted with it.
func (s *Server) removeNIC(n *networkInterface) {
	delete(s.nics, key(n.id))
	s.finish(n.ending, nil)
	if n.address == nil {
		return
	}
	n.address.nic = nil
	if n.deletePublic {
		delete(s.addresses, key(n.address.id))
	}
}
