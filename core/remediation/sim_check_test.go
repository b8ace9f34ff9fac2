package remediation_test

import (
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/health"
	"millwright.dev/core/remediation"
)

// What is checked here goes by what the simulation itself has noted, not by what the code under test writes down.

// checkHandedOver holds a judgement against the truth: no Machine is called unhealthy that has not been ill for as long as the policies
// say.
func (s *simulation) checkHandedOver(m *simMachine, found health.Assessment) {
	if _, demanded := m.Annotations[clusterv1.RemediateMachineAnnotation]; demanded {
		return
	}
	ill := s.now.Sub(m.ill)
	switch {
	case m.ill.IsZero() && !s.recovered(m):
		s.fail("%s is well, and found unhealthy: %s", m.Name, found.Message)
	case m.ill.IsZero():
	case ill < s.policies.least(m):
		s.fail("%s has been ill for %s only, and is found unhealthy: %s", m.Name, ill, found.Message)
	}
	if why := s.forbidden(); why != "" && found.Reason != clusterv1.MachineHealthCheckUnhealthyMachineReason {
		s.fail("%s is found unhealthy while %s: %s", m.Name, why, found.Message)
	}
}

// recovered reports whether a Machine was lost and has come back, or its Node was called Unknown and has reported, a moment ago: the caches
// lag.
func (s *simulation) recovered(m *simMachine) bool {
	if m.node != nil && s.now.Sub(m.node.Status.Conditions[0].LastTransitionTime.Time) < 10*s.step {
		return true
	}
	return !m.back.IsZero() && s.now.Sub(m.back) < 10*s.step || s.now.Sub(m.served) < 10*s.step
}

// checkGranted holds a result against the truth.
func (s *simulation) checkGranted(set *simSet, v remediation.Result, in remediation.Input) {
	if why := s.forbidden(); why != "" {
		s.fail("%s is replaced while %s", v.Name, why)
	}
	if in.Unhealthy > in.Stop.Max {
		s.fail("%s is replaced while %d of %d Machines are unhealthy", v.Name, in.Unhealthy, in.Machines)
	}
	m := s.named(v.Name)
	if m == nil {
		return
	}
	if !m.condemned.IsZero() {
		return
	}
	chain := s.chainAfter(m)
	if chain > s.options.Retry.Max {
		s.fail("%s is replaced, the %d. in a row that did not stay well, and %d retries are allowed", v.Name, chain+1, s.options.Retry.Max)
	}
	// Times in records have no fractions of a second.
	if since := s.now.Sub(m.after); chain > 0 && since < s.options.Retry.Period-2*time.Second {
		s.fail("%s is replaced %s after the one before, and %s is the least", v.Name, since, s.options.Retry.Period)
	}
}

// chainAfter is how many replacements in a row did not stay well when this Machine is replaced.
func (s *simulation) chainAfter(m *simMachine) int {
	well := !m.available.IsZero() && m.handedAt.Sub(m.available) >= s.options.Retry.MinHealthy-10*time.Second
	if !m.replacement || well || m.set != m.set.group.current() ||
		remediation.Demanded(m.set.MachineSet, m.Machine) {
		return 0
	}
	return m.chain + 1
}

// condemn notes that the replacement of a Machine is recorded.
func (s *simulation) condemn(v remediation.Result) {
	if m := s.named(v.Name); m != nil && m.condemned.IsZero() {
		m.next, m.condemned = s.chainAfter(m), s.now
	}
}

// payDebt notes whom a new Machine replaces: the one that it says, or else the first that its set owes.
func (s *simulation) payDebt(m *simMachine) {
	group := m.set.group
	at := -1
	if record := remediation.RecordOf(m.Machine); record != nil {
		at = slices.IndexFunc(group.debts, func(d *simMachine) bool { return d.Name == record.Machine })
	}
	if at < 0 {
		at = slices.IndexFunc(group.debts, func(d *simMachine) bool { return d.set == m.set })
	}
	if at < 0 {
		return
	}
	paid := group.debts[at]
	group.debts = slices.Delete(group.debts, at, at+1)
	m.replacement, m.chain, m.after = true, paid.next, paid.condemned
}

// inFlight counts what is in flight in a group.
func (s *simulation) inFlight(group *simGroup) int {
	held, missing := 0, 0
	for _, set := range group.sets {
		missing += set.replicas()
	}
	for _, m := range s.machines {
		if m.gone || m.set.group != group {
			continue
		}
		missing--
		if !m.condemned.IsZero() && m.DeletionTimestamp.IsZero() && !m.handed() && !remediation.Recorded(m.set.MachineSet)[m.Name] {
			// It has recovered before anything was deleted.
			m.condemned = time.Time{}
		}
		recorded := !m.condemned.IsZero() && (!m.DeletionTimestamp.IsZero() || m.handed())
		coming := m.replacement && m.available.IsZero() && m.DeletionTimestamp.IsZero() &&
			(m.set == group.current() || group.deployment == nil)
		if recorded || coming {
			held++
		}
	}
	if len(group.sets) > 1 && !group.onDelete() {
		// The rollout handles what it has taken meanwhile; how many were missing at that moment depends on who looked when.
		settled := s.view(nil).Flights[group.key()].Settled
		group.debts = slices.DeleteFunc(group.debts, func(d *simMachine) bool {
			return settled[d.Name] || !remediation.Recorded(d.set.MachineSet)[d.Name]
		})
	}
	if keep := max(missing, 0); len(group.debts) > keep {
		// None is wanted any more.
		group.debts = group.debts[:keep]
	}
	return held + len(group.debts)
}

// check holds what is in flight against the limits.
func (s *simulation) check() {
	all, wanted, exist := 0, 0, 0
	for _, group := range s.groups {
		held := s.inFlight(group)
		if limit := group.limit(s.options).Max; held > limit {
			s.fail("%d in flight in %s, and the limit is %d", held, group.key(), limit)
		}
		all, wanted = all+held, wanted+group.replicas()
	}
	for _, m := range s.machines {
		if !m.gone {
			exist++
		}
	}
	if all == 0 {
		s.most = wanted
	}
	// A percentage is of the Machines that there were when the places were given.
	s.most = max(s.most, exist, wanted)
	if limit := s.options.LimitOfCluster(s.cluster, s.most).Max; all > limit {
		s.fail("%d in flight in the Cluster, and the limit is %d", all, limit)
	}
	for _, group := range s.groups {
		if group.deployment == nil {
			if number := len(s.of(group.sets[0])); number > group.replicas() {
				s.fail("%s has %d Machines of %d", group.key(), number, group.replicas())
			}
		}
	}
}

// healed reports whether all Machines are as they should be, all serve, and nothing is in flight.
func (s *simulation) healed() bool {
	for _, group := range s.groups {
		current, serving := group.current(), 0
		for _, set := range group.sets {
			for _, m := range s.of(set) {
				if !m.DeletionTimestamp.IsZero() || !s.serves(m) || m.handed() || set != current && !group.onDelete() {
					return false
				}
				serving++
			}
			if len(remediation.RecordsOf(set.Annotations)) > 0 {
				return false
			}
		}
		if current == nil || serving != group.replicas() {
			return false
		}
	}
	return true
}

// expectBought holds what was bought against the formula of docs/guides/safety.md, and against what is needed at least. What rollouts
// buy is theirs.
func (s *simulation) expectBought(least, most int) {
	if s.bought < least && s.violation == "" {
		s.fail("%d Machines were bought, and %d are needed", s.bought, least)
	}
	if s.bought > most+s.rolled {
		s.fail("%d Machines were bought, and the formula allows %d, and rollouts %d", s.bought, most, s.rolled)
	}
}
