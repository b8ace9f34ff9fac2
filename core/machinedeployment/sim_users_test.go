package machinedeployment

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// people simulates a user who changes something now and then. It records that the number of replicas or a set was
// changed manually, after which sums may have any value.
func (s *simulation) people() {
	switch s.IntN(20) {
	case 0:
		s.template = s.IntN(3)
		s.happened("user: template %d, which may be one of before", s.template)
	case 1:
		s.replicas = s.IntN(12)
		s.happened("user: replicas %d", s.replicas)
	case 2:
		s.deleteByHand(6)
	case 3:
		s.editSet()
	case 4:
		s.paused = !s.paused
		s.happened("user: paused %t", s.paused)
	case 5, 6:
		s.autoscale()
	case 8:
		s.mark()
	case 7:
		if s.IntN(4) == 0 && s.maxSurge+s.maxUnavailable > 0 {
			s.setStrategy(s.IntN(3))
			s.happened("user: %s, recreate %t", s.strategy, s.recreate)
		}
	}
}

func (s *simulation) deleteByHand(oneIn int) {
	for _, set := range s.sets {
		for _, machine := range set.machines {
			if !machine.deleting && s.IntN(oneIn) == 0 {
				machine.deleting = true
				s.happened("user: delete Machine %d of %s", machine.name, set.name)
			}
		}
	}
}

// editSet changes the number of a set as a user would, without the deployment.
func (s *simulation) editSet() {
	if len(s.sets) == 0 {
		return
	}
	set := s.sets[s.IntN(len(s.sets))]
	set.desired = max(0, set.desired+s.IntN(5)-2)
	s.happened("user: %s has %d replicas", set.name, set.desired)
}

// autoscale marks Machines and takes as many off the replicas, as a cluster autoscaler does.
func (s *simulation) autoscale() {
	for _, set := range s.sets {
		for _, machine := range set.machines {
			if s.replicas > 0 && machine.available && !machine.deleting && !machine.chosen && s.IntN(5) == 0 {
				machine.chosen = true
				s.replicas--
				s.happened("autoscaler: Machine %d of %s goes, replicas %d", machine.name, set.name, s.replicas)
			}
		}
	}
}

// mark chooses Machines; the number of replicas stays.
func (s *simulation) mark() {
	for _, set := range s.sets {
		for _, machine := range set.machines {
			if !machine.deleting && !machine.chosen && s.IntN(3) == 0 {
				machine.chosen = true
				s.happened("user: marks Machine %d of %s", machine.name, set.name)
			}
		}
	}
}

// heal takes away what keeps the world from settling. Outdated Machines that never become available do not: no
// health check replaces those, and the rollout has to continue in spite of them. It cannot where their set prefers others that
// must not go.
func (s *simulation) heal() {
	s.chaos, s.paused = false, false
	for _, set := range s.sets {
		for _, machine := range set.machines {
			machine.unhealthy = false
			if set == s.current() || set.blind {
				machine.doomed = false
			}
		}
	}
	s.happened("the world settles")
}

// deleteOutdated is what OnDelete waits for: now and then a person deletes an outdated Machine.
func (s *simulation) deleteOutdated() {
	if s.strategy != clusterv1.OnDeleteMachineDeploymentStrategyType || s.chaos {
		return
	}
	current := s.current()
	for _, set := range s.sets {
		for _, machine := range set.machines {
			if set != current && !machine.deleting && s.IntN(3) == 0 {
				machine.deleting = true
				s.happened("user: delete outdated Machine %d of %s", machine.name, set.name)
				return
			}
		}
	}
}
