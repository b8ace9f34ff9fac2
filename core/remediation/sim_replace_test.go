package remediation_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machineset"
	"millwright.dev/core/remediation"
)

// live is what the API server has and the cache may not show.
func (s *simulation) live(view remediation.View) []remediation.Live {
	var live []remediation.Live
	replaced := map[string]bool{}
	for _, m := range s.machines {
		if record := remediation.RecordOf(m.Machine); record != nil && !m.gone {
			replaced[record.Machine] = true
		}
	}
	for _, group := range s.groups {
		for _, set := range group.sets {
			for _, record := range remediation.RecordsOf(set.Annotations) {
				m := s.named(record.Machine)
				going := m != nil && !m.DeletionTimestamp.IsZero()
				if !replaced[record.Machine] && (going || !view.Flights[group.key()].Settled[record.Machine]) {
					live = append(live, remediation.Live{Slot: remediation.Slot{Group: group.key(), Machine: record.Machine}})
				}
			}
		}
	}
	for _, m := range s.machines {
		if m.seen == nil && !m.gone && remediation.Coming(m.Machine) {
			live = append(live, remediation.Live{Slot: remediation.Slot{Group: m.set.group.key(), Machine: m.Name}, Coming: true})
		}
	}
	return live
}

func (s *simulation) input(set *simSet, view remediation.View) remediation.Input {
	total := max(view.Machines, view.Wanted)
	return remediation.Input{
		Now: s.now, Frozen: s.process.freezer.Frozen(simCluster), Retry: s.options.Retry, Unhealthy: view.Unhealthy, Machines: total,
		Deployment: set.group.limit(s.options), Cluster: s.options.LimitOfCluster(s.cluster, total), Stop: s.options.StopOf(s.cluster, total),
		Retries: remediation.RetriesOf(set.MachineSet, s.owned(set, true)),
	}
}

// replace does what was decided, with Machines of which it is not known whether they are still unhealthy, writes that fail before or after
// their effect, and a process that dies in between.
func (s *simulation) replace(set *simSet, in remediation.Input, d remediation.Decision) {
	known := remediation.Recorded(set.MachineSet)
	records := remediation.RecordsOf(set.Annotations)
	var granted, doubted []remediation.Result
	for _, v := range d.Results {
		switch {
		case !v.Allowed():
		case s.dice.IntN(8) == 0:
			doubted = append(doubted, v)
		default:
			s.checkGranted(set, v, in)
			granted = append(granted, v)
			if !known[v.Name] {
				records = append(records, v.Record)
			}
		}
	}
	fate := s.dice.IntN(12)
	s.slots.Attempted(simCluster, set.group.key(), slices.Concat(granted, doubted), s.now)
	s.release(set, doubted)
	switch fate {
	case 0: // refused
		s.release(set, granted)
		return
	case 1: // lost before its effect
		return
	}
	for _, v := range granted {
		s.condemn(v)
		s.note("%s of %s replaces %s: in flight %d of %d, %d of %d; fate %d", set.Name, set.group.key(), v.Name,
			d.InFlight, in.Deployment.Max, d.InCluster, in.Cluster.Max, fate)
	}
	if set.record(records); fate == 2 { // the answer is lost
		return
	}
	for _, v := range granted {
		m := s.named(v.Name)
		if m == nil || !m.DeletionTimestamp.IsZero() || m.Machine != m.seen && !remediation.Begun(m.Machine) {
			continue
		}
		m.change(func(c *clusterv1.Machine) { announce(c) })
		if s.dice.IntN(8) == 0 {
			return
		}
		m.change(func(c *clusterv1.Machine) { c.DeletionTimestamp = &metav1.Time{Time: s.now} })
	}
}

// release gives back the places of those of which nothing was recorded.
func (s *simulation) release(set *simSet, results []remediation.Result) {
	for _, v := range results {
		if v.First {
			s.slots.Release(simCluster, set.group.key(), v.Name)
		}
	}
}

// scale makes and deletes Machines.
func (s *simulation) scale(set *simSet) {
	plan := machineset.PlanScale(set.MachineSet, set.replicas(), s.owned(set, true))
	for _, doomed := range plan.Remove {
		if m := s.named(doomed.Name); m != nil && m.Machine == doomed && s.dice.IntN(8) > 0 {
			m.change(func(c *clusterv1.Machine) { c.DeletionTimestamp = &metav1.Time{Time: s.now} })
		}
	}
	if plan.Create == 0 {
		return
	}
	var owed []remediation.Record
	if len(remediation.Recorded(set.MachineSet)) > 0 || set.group.onDelete() {
		owed = s.view(set).Flights[set.group.key()].Owed
	}
	for n := range plan.Create {
		if s.dice.IntN(10) == 0 {
			return
		}
		record := ""
		if n < len(owed) {
			record = owed[n].String()
		}
		s.create(set, record)
	}
}
