package remediation_test

import (
	"time"
)

// scenarios each return the simulation after its end.
var scenarios = map[string]func(seed uint64) *simulation{
	"80 of 100 Nodes lost":           manyLost,
	"a zone lost":                    zoneLost,
	"flapping":                       flapping,
	"a template that never comes up": neverComesUp,
	"a broken rollout":               brokenRollout,
	"target API server away":         targetAway,
	"target API server away, 1,000":  targetAwayThousand,
	"cloud API away for an hour":     cloudAway,
	"too many unhealthy":             tooMany,
	"a rollout with losses":          rolloutWithLosses,
	"a core that dies all the time":  dyingCore,
}

func manyLost(seed uint64) *simulation {
	s := newSimulation(seed, 60, 40)
	s.maybeRoll(time.Hour)
	s.lose(80, 0)
	s.run("healing", s.healed)
	s.expectBought(s.least(80), 80)
	return s
}

func zoneLost(seed uint64) *simulation {
	s := newSimulation(seed, 12, 9, 6)
	s.maybeRoll(time.Hour)
	s.zoneDown = s.dice.IntN(s.zones)
	if s.dice.IntN(2) == 0 {
		s.groups[1].pinned = s.zoneDown
	}
	lost := 0
	for _, m := range s.machines {
		if m.zone == s.zoneDown {
			m.lost = s.now
			lost++
		}
	}
	if s.groups[1].pinned < 0 {
		s.run("healing", s.healed)
		s.expectBought(s.least(lost), lost)
		return s
	}
	// Of the deployment that must not leave the zone none comes up until it is back.
	s.wait(2 * time.Hour)
	s.expectBought(0, lost+s.options.Retry.Max)
	s.zoneDown = -1
	s.run("healing", s.healed)
	s.expectBought(s.least(lost), lost*(s.options.Retry.Max+1))
	return s
}

func flapping(seed uint64) *simulation {
	s := newSimulation(seed, 10, 5)
	s.maybeRoll(3 * time.Hour)
	lost := 0
	for range 30 {
		s.lose(2, time.Duration(1+s.dice.IntN(12))*time.Minute)
		lost += 2
		s.wait(time.Duration(s.dice.IntN(6)) * time.Minute)
	}
	s.run("healing", s.healed)
	s.expectBought(0, lost)
	return s
}

func neverComesUp(seed uint64) *simulation {
	s := newSimulation(seed, 10, 6)
	s.broken = true
	s.lose(8, 0)
	lost := s.lostOf()
	attempt := 12*time.Minute + s.options.Retry.Period + 5*time.Minute
	s.work(time.Duration(s.options.Retry.Max+2) * attempt)
	places := s.places(lost)
	s.expectBought(places, places+len(lost)*s.options.Retry.Max)
	before := s.bought
	s.wait(time.Hour)
	if s.bought != before {
		s.fail("Machines are bought for ever")
	}
	// It is fixed, and a user asks for one more try of those that failed.
	s.broken = false
	next := s.now
	s.run("healing", func() bool {
		if !s.now.Before(next) {
			s.retryFailed()
			next = s.now.Add(20 * time.Minute)
		}
		return s.healed()
	})
	return s
}

func brokenRollout(seed uint64) *simulation {
	s := newSimulation(seed, 8, 6)
	group := s.groups[0]
	group.broken[1] = true
	s.newTemplate(group)
	s.wait(time.Duration(s.dice.IntN(4*3600)) * time.Second)
	s.expectBought(0, group.replicas()+s.options.Retry.Max)
	s.newTemplate(group)
	if group.onDelete() {
		return s
	}
	s.run("healing", s.healed)
	return s
}

func targetAway(seed uint64) *simulation { return away(newSimulation(seed, 20, 10)) }

func targetAwayThousand(seed uint64) *simulation { return away(newSimulation(seed, 600, 300, 100)) }

// away has the target's API server away for ten minutes. What was lost before is replaced after.
func away(s *simulation) *simulation {
	lost := s.dice.IntN(4)
	s.lose(lost, 0)
	s.maybeRoll(20 * time.Minute)
	s.wait(time.Duration(s.dice.IntN(600)) * time.Second)
	s.outage(10 * time.Minute)
	s.run("healing", s.healed)
	s.expectBought(s.least(lost), lost)
	return s
}

// outage has the target's API server away.
func (s *simulation) outage(d time.Duration) {
	s.targetDown, s.targetUntil = s.now, s.now.Add(d)
	s.wait(d)
	s.targetDown, s.targetBack = time.Time{}, s.now
	s.connected()
}

func cloudAway(seed uint64) *simulation {
	s := newSimulation(seed, 15, 5)
	s.maybeRoll(time.Hour)
	s.cloudDown = true
	s.lose(6, 0)
	s.wait(time.Hour)
	s.cloudDown = false
	s.run("healing", s.healed)
	s.expectBought(s.least(6), (6+s.rolled)*(s.options.Retry.Max+1))
	return s
}

func tooMany(seed uint64) *simulation {
	s := newSimulation(seed, 12, 8)
	s.options.StopAbove = "50%"
	s.lose(15, 0)
	// As long as their number is not known, some are replaced.
	s.wait(time.Hour)
	s.options.StopAbove = ""
	s.run("healing", s.healed)
	s.expectBought(15, 15)
	return s
}

func rolloutWithLosses(seed uint64) *simulation {
	s := newSimulation(seed, 12, 6, 4)
	// The same place may be hit each time.
	s.options.Retry.Max = 6
	s.rollAt = s.now
	lost := 0
	for range 6 {
		s.wait(time.Duration(s.dice.IntN(10)) * time.Minute)
		s.lose(1, 0)
		lost++
	}
	s.run("healing", s.healed)
	s.expectBought(0, lost)
	return s
}

func dyingCore(seed uint64) *simulation {
	s := newSimulation(seed, 20, 10)
	s.maybeRoll(time.Hour)
	s.lose(12, 0)
	for range 40 {
		s.wait(time.Duration(s.dice.IntN(120)) * time.Second)
		s.start(pick(s, 0, 0, 10*time.Second, time.Minute))
	}
	s.run("healing", s.healed)
	s.expectBought(s.least(12), 12)
	return s
}
