package remediation_test

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
)

// run continues until done, which must come before the horizon.
func (s *simulation) run(what string, done func() bool) {
	for end := s.now.Add(simHorizon); s.violation == "" && !done(); s.tick() {
		if s.now.After(end) {
			s.fail("%s never came", what)
		}
	}
}

func (s *simulation) wait(d time.Duration) {
	end := s.now.Add(d)
	s.run("the time", func() bool { return !s.now.Before(end) })
}

// work lets that much time go by in which the caches follow.
func (s *simulation) work(d time.Duration) {
	end, hung := s.now.Add(d), s.stalled.sum
	s.run("the time", func() bool { return !s.now.Before(end.Add(s.stalled.sum - hung)) })
}

// maybeRoll has the template of a deployment change within that time, in one of three simulations.
func (s *simulation) maybeRoll(within time.Duration) {
	if s.dice.IntN(3) == 0 {
		s.rollAt = s.now.Add(time.Duration(s.dice.Int64N(int64(within))))
	}
}

func (s *simulation) changeTemplate() {
	if s.rollAt.IsZero() || s.now.Before(s.rollAt) {
		return
	}
	s.rollAt = time.Time{}
	group := s.groups[0]
	s.newTemplate(group)
}

// newTemplate changes the template of a deployment: outdated sets make no more Machines with OnDelete.
func (s *simulation) newTemplate(group *simGroup) {
	group.template++
	s.note("%s has template %d", group.key(), group.template)
	if !group.onDelete() {
		s.rolled += group.replicas()
		return
	}
	for _, set := range group.sets {
		set.write(func(c *clusterv1.MachineSet) { c.Annotations[clusterv1.DisableMachineCreateAnnotation] = "true" })
	}
}

// lose breaks n Machines, for a time or for ever, in any way.
func (s *simulation) lose(n int, d time.Duration) {
	var there []*simMachine
	for _, m := range s.machines {
		if !m.gone {
			there = append(there, m)
		}
	}
	s.dice.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
	for _, m := range there[:min(n, len(there))] {
		m.lost, m.back, m.how = s.now, time.Time{}, loss(s.dice.IntN(int(losses)))
		if d > 0 {
			m.back, m.how = s.now.Add(d), notReady
		}
	}
}

// places is how many replacements may be in flight.
func (s *simulation) places(lost map[*simGroup]int) int {
	sum := 0
	for _, group := range s.groups {
		sum += min(lost[group], group.limit(s.options).Max)
	}
	total := 0
	for _, group := range s.groups {
		total += group.replicas()
	}
	return min(sum, s.options.LimitOfCluster(s.cluster, total).Max)
}

// lostOf counts the lost Machines of each group.
func (s *simulation) lostOf() map[*simGroup]int {
	lost := map[*simGroup]int{}
	for _, m := range s.machines {
		if !m.lost.IsZero() {
			lost[m.set.group]++
		}
	}
	return lost
}

// retryFailed has a user ask for one more try of all that is unhealthy, until all is well.
func (s *simulation) retryFailed() {
	for _, m := range s.machines {
		if m.handed() && m.DeletionTimestamp.IsZero() {
			m.change(func(c *clusterv1.Machine) {
				c.Annotations = map[string]string{
					clusterv1.RemediateMachineAnnotation: "", remediation.ReplacesAnnotation: c.Annotations[remediation.ReplacesAnnotation],
				}
			})
		}
	}
}

// least is how many Machines are bought at least for that many that were lost: a rollout may take some of them away.
func (s *simulation) least(lost int) int {
	if s.rolled > 0 {
		return 0
	}
	return lost
}
