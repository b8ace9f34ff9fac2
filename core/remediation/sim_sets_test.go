package remediation_test

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machinedeployment"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
)

func (set *simSet) replicas() int { return int(*set.Spec.Replicas) }

// write replaces the object of a set by a changed copy.
func (set *simSet) write(change func(*clusterv1.MachineSet)) {
	changed := set.DeepCopy()
	change(changed)
	set.MachineSet = changed
}

func (set *simSet) record(records []remediation.Record) {
	text := remediation.FormatRecords(records)
	if text == set.Annotations[remediation.ReplacingAnnotation] {
		return
	}
	set.write(func(c *clusterv1.MachineSet) {
		if delete(c.Annotations, remediation.ReplacingAnnotation); text != "" {
			c.Annotations[remediation.ReplacingAnnotation] = text
		}
	})
}

// current is the set whose template is wanted.
func (g *simGroup) current() *simSet {
	for _, set := range g.sets {
		if set.template == g.template {
			return set
		}
	}
	return nil
}

func (g *simGroup) onDelete() bool {
	return g.deployment != nil && g.deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
}

func (g *simGroup) replicas() int {
	if g.deployment != nil {
		return int(*g.deployment.Spec.Replicas)
	}
	return g.sets[0].replicas()
}

// key is what Slots know the group by.
func (g *simGroup) key() types.UID { return remediation.GroupOf(g.sets[0]) }

// limit is that of the group.
func (g *simGroup) limit(o remediation.Options) remediation.Limit {
	limit := o.LimitOf(g.deployment, g.sets[0].MachineSet, g.replicas())
	limit.Max = min(limit.Max, remediation.MaxRecords)
	return limit
}

// owned are the Machines of a set as its controller knows them: those that exist, as the cache shows them; others that the cache has.
func (s *simulation) owned(set *simSet, own bool) []*clusterv1.Machine {
	var list []*clusterv1.Machine
	for _, m := range s.machines {
		switch {
		case m.set != set:
		case !own && m.seen != nil:
			list = append(list, m.seen)
		case !own || m.gone:
		case m.seen == nil || !m.DeletionTimestamp.IsZero():
			list = append(list, m.Machine)
		default:
			list = append(list, m.seen)
		}
	}
	return list
}

// view is what a set sees.
func (s *simulation) view(own *simSet) remediation.View {
	var all []remediation.Owned
	var deployments []*clusterv1.MachineDeployment
	for _, group := range s.groups {
		if group.deployment != nil {
			deployments = append(deployments, group.deployment)
		}
		for _, set := range group.sets {
			object := set.seen
			if set == own {
				object = set.MachineSet
			}
			all = append(all, remediation.Owned{MachineSet: object, Machines: s.owned(set, set == own)})
		}
	}
	return remediation.ViewOf(all, deployments)
}

// reconcile is what a set does: settle, replace, scale.
func (s *simulation) reconcile(set *simSet) {
	if set.seen != set.MachineSet {
		// The cache is behind what was written last: it waits, or gets a conflict.
		return
	}
	set.reserve = 0
	if s.dice.IntN(4) > 0 {
		s.settle(set)
	}
	due := remediation.Due(set.MachineSet, s.owned(set, true))
	outdated := set != set.group.current()
	if len(due) > 0 && (!outdated || set.group.onDelete()) {
		view := s.view(set)
		in := s.input(set, view)
		if unverified := s.slots.Unverified(simCluster, view, s.now); unverified.Any() {
			// The API server may not answer.
			if s.dice.IntN(8) > 0 {
				s.slots.Verify(simCluster, unverified, s.live(view), view, s.now)
			} else {
				in.Unread, in.UnreadAtAll = "no answer", unverified.Start
			}
		}
		in.Candidates = remediation.Candidates(set.MachineSet, due, outdated, s.now)
		decision := s.slots.Decide(simCluster, set.group.key(), view, in)
		s.replace(set, in, decision)
	}
	s.scale(set)
	replicas := ptr.To(int32(len(s.owned(set, true))))
	if ptr.Deref(set.Status.Replicas, -1) != *replicas || set.Status.ObservedGeneration != set.Generation {
		set.write(func(c *clusterv1.MachineSet) { c.Status.Replicas, c.Status.ObservedGeneration = replicas, c.Generation })
	}
}

// settle writes what has become of replacements. A record stays until the cache shows the replacement, which others go by.
func (s *simulation) settle(set *simSet) {
	for _, m := range s.of(set) {
		if m.seen != m.Machine || !m.DeletionTimestamp.IsZero() {
			continue
		}
		record := remediation.RecordOf(m.Machine)
		available := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineAvailableCondition)
		if record != nil && record.Available == nil && available.Status == metav1.ConditionTrue {
			record.Available = &available.LastTransitionTime.Time
			m.change(func(c *clusterv1.Machine) { c.Annotations[remediation.ReplacesAnnotation] = record.String() })
		}
		if machines.OwnerRemediationRequested(m.Machine) && m.isTrue(clusterv1.MachineHealthCheckSucceededCondition) {
			m.change(func(c *clusterv1.Machine) {
				meta.RemoveStatusCondition(&c.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
			})
		}
	}
	records := remediation.RecordsOf(set.Annotations)
	if len(records) == 0 {
		return
	}
	flight := s.view(nil).Flights[set.group.key()]
	set.record(slices.DeleteFunc(records, func(r remediation.Record) bool {
		return flight.Settled[r.Machine] || flight.Recovered[r.Machine] && s.hasRecovered(r.Machine)
	}))
}

// hasRecovered asks the API server, which may not answer, whether a Machine that was to be replaced has recovered.
func (s *simulation) hasRecovered(name string) bool {
	m := s.named(name)
	return s.dice.IntN(8) > 0 && m != nil && remediation.Recovered(m.Machine)
}

func (s *simulation) named(name string) *simMachine {
	for _, m := range s.machines {
		if m.Name == name && !m.gone {
			return m
		}
	}
	return nil
}

// roll is what a deployment does: it has the planner give its sets their numbers.
func (s *simulation) roll(group *simGroup) {
	if group.deployment == nil || s.dice.IntN(4) == 0 {
		return
	}
	rollout := machinedeployment.Rollout{Machines: map[types.UID][]*clusterv1.Machine{}, Reserve: func(set *clusterv1.MachineSet) int {
		return group.named(set.UID).reserve
	}}
	for _, set := range group.sets {
		rollout.Sets = append(rollout.Sets, set.MachineSet)
		rollout.Machines[set.UID] = s.owned(set, true)
	}
	if current := group.current(); current != nil {
		rollout.Current = current.MachineSet
	}
	replicas, created := rollout.Next(group.deployment)
	for _, set := range group.sets {
		if to := replicas[set.UID]; to != set.replicas() {
			if to < set.replicas() {
				set.reserve = max(set.reserve, set.replicas())
			}
			set.write(func(c *clusterv1.MachineSet) { c.Spec.Replicas, c.Generation = ptr.To(int32(to)), c.Generation+1 })
		}
	}
	if created != nil {
		s.addSet(group, *created)
	}
}

func (g *simGroup) named(uid types.UID) *simSet {
	return g.sets[slices.IndexFunc(g.sets, func(set *simSet) bool { return set.UID == uid })]
}

// mustSee reports whether the Node of a Machine has changed longer ago than a cache lags, which is for less than two steps.
func (s *simulation) mustSee(m *simMachine) bool {
	return m.node != nil && m.node != m.nodeSeen && s.now.Sub(m.node.Status.Conditions[0].LastTransitionTime.Time) >= s.step
}

// tick lets one step go by.
func (s *simulation) tick() {
	s.now = s.now.Add(s.step)
	was := s.disconnected()
	s.cloud()
	for _, m := range s.machines {
		if skip := s.dice.IntN(8) == 0; !skip || s.mustSee(m) {
			s.link(m)
		}
	}
	if was != s.disconnected() || !s.targetDown.IsZero() && s.now.Sub(s.targetDown) < simProbe+s.step {
		s.connected()
	}
	if s.dice.IntN(4) > 0 {
		s.report()
	}
	s.judge()
	s.stall()
	s.catchUp(s.dice.Float64())
	s.changeTemplate()
	switch fate := s.dice.IntN(400); {
	case !s.mayDie():
	case fate <= 1: // Its cache may be as old as that of the one before.
		s.start(0)
	case fate == 2:
		s.start(s.freezing.Timeout + time.Duration(s.dice.IntN(60))*time.Second)
	}
	var sets []*simSet
	for _, group := range s.groups {
		s.roll(group)
		sets = append(sets, group.sets...)
	}
	s.dice.Shuffle(len(sets), func(i, j int) { sets[i], sets[j] = sets[j], sets[i] })
	for _, set := range sets {
		s.reconcile(set)
		s.check()
	}
	for _, group := range s.groups {
		group.sets = slices.DeleteFunc(group.sets, func(set *simSet) bool {
			return set != group.current() && set.replicas() == 0 && len(s.owned(set, true))+len(s.owned(set, false)) == 0
		})
	}
}
