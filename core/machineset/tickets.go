package machineset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// tickets see to it that no more Machines of a MachineDeployment are remediated at once than its
// spec.remediation.maxInFlight allows, however many sets it has and however many of them are reconciled at the same
// time. What is in flight is read from the Machines themselves; a ticket stands in for it from the decision until
// the cache shows it. The zero value is ready for use.
type tickets struct {
	mu sync.Mutex
	// of are the tickets by the UID of the deployment.
	of map[types.UID]*booklet
}

// booklet holds the tickets of one deployment.
type booklet struct {
	// verified means that the API server itself has been asked once which Machines are being deleted.
	verified bool
	taken    map[types.UID]ticket
}

// ticket is for a Machine whose remediation has been decided.
type ticket struct {
	since time.Time
	// seen means that the cache has had the Machine: when it has it no more, the Machine is gone.
	seen bool
}

// inFlight says whether a Machine is on its way out for having been found unhealthy.
func inFlight(machine *clusterv1.Machine) bool {
	if machine.DeletionTimestamp.IsZero() {
		return false
	}
	said := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	return said != nil && said.Status == metav1.ConditionFalse &&
		said.Reason == clusterv1.MachineSetMachineRemediationMachineDeletingReason
}

// grant is the answer to a request for tickets.
type grant struct {
	// machines are those that may be remediated now.
	machines []*clusterv1.Machine
	// fresh are those of them that had no ticket before: nothing has been done about them yet.
	fresh map[types.UID]bool
	// busy counts the remediations in flight, those granted now included.
	busy int
	// until is when a ticket that the cache does not bear out expires; zero for none.
	until time.Time
}

// take asks for tickets for the Machines wanted, in this order. known are all Machines of the deployment that the
// cache has.
func (t *tickets) take(deployment types.UID, limit int, known, wanted []*clusterv1.Machine, now time.Time) grant {
	t.mu.Lock()
	defer t.mu.Unlock()
	page := t.page(deployment)
	busy := page.settle(known, now)
	granted := grant{fresh: map[types.UID]bool{}}
	for _, machine := range wanted {
		switch _, taken := page.taken[machine.UID]; {
		case taken:
		case busy < limit:
			page.taken[machine.UID] = ticket{since: now, seen: true}
			granted.fresh[machine.UID] = true
			busy++
		default:
			continue
		}
		granted.machines = append(granted.machines, machine)
	}
	granted.busy = busy
	for _, ticket := range page.taken {
		if until := ticket.since.Add(unseenTimeout); granted.until.IsZero() || until.Before(granted.until) {
			granted.until = until
		}
	}
	return granted
}

// settle drops the tickets that the cache bears out or that are of no use any more, and counts what is in flight.
func (b *booklet) settle(known []*clusterv1.Machine, now time.Time) int {
	busy := 0
	present := make(map[types.UID]bool, len(known))
	for _, machine := range known {
		present[machine.UID] = true
		if inFlight(machine) {
			busy++
		}
		if held, ok := b.taken[machine.UID]; ok {
			if machine.DeletionTimestamp.IsZero() {
				b.taken[machine.UID] = ticket{since: held.since, seen: true}
			} else {
				delete(b.taken, machine.UID)
			}
		}
	}
	for uid, held := range b.taken {
		if held.seen && !present[uid] || now.Sub(held.since) >= unseenTimeout {
			delete(b.taken, uid)
		}
	}
	return busy + len(b.taken)
}

// giveBack returns the ticket of a Machine whose deletion was not even tried. It must be a fresh one: an earlier try
// whose answer was lost may have taken effect.
func (t *tickets) giveBack(deployment, machine types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.page(deployment).taken, machine)
}

// verified says whether the deployment's remediations are known from the API server itself since the start.
func (t *tickets) verified(deployment types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.page(deployment).verified
}

// verify takes in the Machines that the API server has, by their metadata. Those that are being deleted there and
// not in the cache hold a ticket until the cache tells why they are.
func (t *tickets) verify(deployment types.UID, live []metav1.PartialObjectMetadata, known []*clusterv1.Machine, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	page := t.page(deployment)
	page.verified = true
	cached := make(map[types.UID]*clusterv1.Machine, len(known))
	for _, machine := range known {
		cached[machine.UID] = machine
	}
	for i := range live {
		machine := cached[live[i].UID]
		if !live[i].DeletionTimestamp.IsZero() && (machine == nil || machine.DeletionTimestamp.IsZero()) {
			page.taken[live[i].UID] = ticket{since: now, seen: machine != nil}
		}
	}
}

// page returns the tickets of a deployment. It is called under mu.
func (t *tickets) page(deployment types.UID) *booklet {
	if t.of == nil {
		t.of = map[types.UID]*booklet{}
	}
	page, ok := t.of[deployment]
	if !ok {
		page = &booklet{taken: map[types.UID]ticket{}}
		t.of[deployment] = page
	}
	return page
}

// forget drops the tickets of a deployment that is gone.
func (t *tickets) forget(deployment types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, deployment)
}
