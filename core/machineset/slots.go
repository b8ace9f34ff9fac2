package machineset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// remediationSlots see to it that no more Machines of a MachineDeployment are remediated at once than its
// spec.remediation.maxInFlight allows, however many sets it has and however many of them are reconciled at the same
// time. What is in flight is read from the Machines themselves; a slot stands in for it from the decision until
// the cache shows it. The zero value is ready for use.
type remediationSlots struct {
	mu sync.Mutex
	// of are the slots by the UID of the deployment.
	of map[types.UID]*deploymentSlots
}

// deploymentSlots holds the slots of one deployment.
type deploymentSlots struct {
	// verified means that the API server itself has been asked once which Machines are being deleted.
	verified bool
	taken    map[types.UID]slot
}

// slot is for a Machine whose remediation has been decided.
type slot struct {
	since time.Time
	// seen means that the cache has had the Machine: when it has it no more, the Machine is gone.
	seen bool
}

// inFlight reports whether a Machine is being deleted because it was unhealthy.
func inFlight(machine *clusterv1.Machine) bool {
	if machine.DeletionTimestamp.IsZero() {
		return false
	}
	found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	return found != nil && found.Status == metav1.ConditionFalse &&
		found.Reason == clusterv1.MachineSetMachineRemediationMachineDeletingReason
}

// grant is the answer to a request for slots.
type grant struct {
	// machines are those that may be remediated now.
	machines []*clusterv1.Machine
	// fresh are those of them that had no slot before: nothing has been done about them yet.
	fresh map[types.UID]bool
	// busy counts the remediations in flight, those granted now included.
	busy int
	// until is when a slot that the cache does not confirm expires; zero for none.
	until time.Time
}

// take asks for slots for the Machines wanted, in this order. known are all Machines of the deployment that the
// cache has.
func (s *remediationSlots) take(deployment types.UID, limit int, known, wanted []*clusterv1.Machine, now time.Time) grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slotsOf(deployment)
	busy := slots.settle(known, now)
	granted := grant{fresh: map[types.UID]bool{}}
	for _, machine := range wanted {
		switch _, taken := slots.taken[machine.UID]; {
		case taken:
		case busy < limit:
			slots.taken[machine.UID] = slot{since: now, seen: true}
			granted.fresh[machine.UID] = true
			busy++
		default:
			continue
		}
		granted.machines = append(granted.machines, machine)
	}
	granted.busy = busy
	for _, slot := range slots.taken {
		if until := slot.since.Add(unseenTimeout); granted.until.IsZero() || until.Before(granted.until) {
			granted.until = until
		}
	}
	return granted
}

// settle drops the slots that the cache confirms or that are of no use any more, and counts what is in flight.
func (d *deploymentSlots) settle(known []*clusterv1.Machine, now time.Time) int {
	busy := 0
	present := make(map[types.UID]bool, len(known))
	for _, machine := range known {
		present[machine.UID] = true
		if inFlight(machine) {
			busy++
		}
		if held, ok := d.taken[machine.UID]; ok {
			if machine.DeletionTimestamp.IsZero() {
				d.taken[machine.UID] = slot{since: held.since, seen: true}
			} else {
				delete(d.taken, machine.UID)
			}
		}
	}
	for uid, held := range d.taken {
		if held.seen && !present[uid] || now.Sub(held.since) >= unseenTimeout {
			delete(d.taken, uid)
		}
	}
	return busy + len(d.taken)
}

// release returns the slot of a Machine whose deletion was not even tried. It must be a fresh one: an earlier try
// whose answer was lost may have taken effect.
func (s *remediationSlots) release(deployment, machine types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slotsOf(deployment).taken, machine)
}

// verified reports whether the deployment's remediations are known from the API server itself since the start.
func (s *remediationSlots) verified(deployment types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slotsOf(deployment).verified
}

// verify takes in the Machines that the API server has, by their metadata. Those that are being deleted there and
// not in the cache hold a slot until the cache shows why they are.
func (s *remediationSlots) verify(deployment types.UID, live []metav1.PartialObjectMetadata, known []*clusterv1.Machine, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := s.slotsOf(deployment)
	slots.verified = true
	cached := make(map[types.UID]*clusterv1.Machine, len(known))
	for _, machine := range known {
		cached[machine.UID] = machine
	}
	for i := range live {
		machine := cached[live[i].UID]
		if !live[i].DeletionTimestamp.IsZero() && (machine == nil || machine.DeletionTimestamp.IsZero()) {
			slots.taken[live[i].UID] = slot{since: now, seen: machine != nil}
		}
	}
}

// slotsOf returns the slots of a deployment. It is called under mu.
func (s *remediationSlots) slotsOf(deployment types.UID) *deploymentSlots {
	if s.of == nil {
		s.of = map[types.UID]*deploymentSlots{}
	}
	slots, ok := s.of[deployment]
	if !ok {
		slots = &deploymentSlots{taken: map[types.UID]slot{}}
		s.of[deployment] = slots
	}
	return slots
}

// forget drops the slots of a deployment that is gone.
func (s *remediationSlots) forget(deployment types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, deployment)
}
