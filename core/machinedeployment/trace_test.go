package machinedeployment

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// update rewrites the traces: go test ./core/machinedeployment -run TestTraces -update.
var update = flag.Bool("update", false, "rewrite testdata/*.txt")

// story is a world in which nothing happens by chance: Machines are available, and gone, a round after they were
// created, and deleted. It records what happens in words.
type story struct {
	*simulation
	text strings.Builder
	// broken templates give Machines that never become available; stuck Machines do not go.
	broken int
	stuck  map[int]bool
	round  int
}

func newStory(replicas, surge, unavailable int) *story {
	s := &story{simulation: &simulation{}, broken: -1, stuck: map[int]bool{}}
	s.replicas, s.maxSurge, s.maxUnavailable = replicas, surge, unavailable
	s.strategy = clusterv1.RollingUpdateMachineDeploymentStrategyType
	s.record("%d replicas, maxSurge %d, maxUnavailable %d", replicas, surge, unavailable)
	s.until(99)
	return s
}

func (s *story) record(format string, args ...any) { fmt.Fprintf(&s.text, format+"\n", args...) }

// user changes something.
func (s *story) user(what string, change func()) {
	s.record("\nuser: %s", what)
	change()
}

// until plans and lets time pass until nothing changes any more, or for some rounds.
func (s *story) until(rounds int) {
	for range rounds {
		moved := s.tick()
		p := makePlan(s.look())
		if !p.create && len(p.scale) == 0 && !moved {
			return
		}
		s.round++
		s.record("round %d", s.round)
		s.notePlan(p)
		s.trace.Reset()
		s.apply(p)
		for _, set := range s.sets {
			s.act(set)
		}
		s.noteSets()
	}
}

func (s *story) notePlan(p plan) {
	for _, i := range p.scale {
		s.record("  %s %d → %d: %s", letters(i.set), i.from, i.to, i.reason)
	}
	if p.create {
		s.record("  %s new, %d: %s", letters(fmt.Sprintf("s%03d", len(s.sets))), p.createReplicas, p.createReason)
	}
}

// letters names sets by letters, in the order in which they were created.
func letters(set string) string { return string(rune('A' + set[len(set)-1] - '0')) }

func (s *story) noteSets() {
	total, available := 0, 0
	for _, set := range s.sets {
		if len(set.machines)+set.desired == 0 {
			continue
		}
		up, going, coming := 0, 0, 0
		for _, m := range set.machines {
			switch {
			case m.deleting:
				going++
			case m.available:
				up++
			default:
				coming++
			}
		}
		total, available = total+len(set.machines), available+up
		s.record("    %s (template %d): replicas %d; %d available, %d not available, %d going", letters(set.name), set.template, set.desired, up, coming, going)
	}
	s.record("    together %d Machines, %d available", total, available)
}

// tick lets a moment pass; it reports whether anything moved.
func (s *story) tick() (moved bool) {
	for _, set := range s.sets {
		for _, m := range slices.Clone(set.machines) {
			switch {
			case m.deleting && !s.stuck[m.name]:
				set.machines = slices.DeleteFunc(set.machines, func(other *simMachine) bool { return other == m })
				moved = true
			case !m.deleting && !m.available && !m.doomed && set.template != s.broken:
				m.available, moved = true, true
			}
		}
	}
	return moved
}

// machine is the n-th Machine of a set.
func (s *story) machine(set string, n int) *simMachine { return s.set(set).machines[n] }

var stories = map[string]func() *story{
	"rolling-update": func() *story {
		s := newStory(3, 1, 0)
		s.user("another template", func() { s.template = 1 })
		s.until(99)
		return s
	},
	"rolling-update-without-surge": func() *story {
		s := newStory(4, 0, 2)
		s.user("another template", func() { s.template = 1 })
		s.until(99)
		return s
	},
	"rolling-update-of-thirty": func() *story {
		s := newStory(30, 3, 0)
		s.user("another template", func() { s.template = 1 })
		s.until(99)
		return s
	},
	"slow-drain": func() *story {
		s := newStory(3, 1, 0)
		s.user("another template; the Machine of A that goes first will drain for long", func() {
			s.template = 1
			s.stuck[s.set("s000").order()[0].name] = true
		})
		s.until(99)
		s.user("the drain is over", func() { s.stuck = map[int]bool{} })
		s.until(99)
		return s
	},
	"outdated-machines-unavailable": func() *story {
		s := newStory(3, 1, 0)
		s.user("another template; two Machines of A are not available, and never will be", func() {
			s.template = 1
			for n := range 2 {
				s.machine("s000", n).available, s.machine("s000", n).doomed = false, true
			}
		})
		s.until(99)
		return s
	},
	"scaled-in-the-middle": func() *story {
		s := newStory(3, 1, 0)
		s.user("another template", func() { s.template = 1 })
		s.until(3)
		s.user("6 replicas", func() { s.replicas = 6 })
		s.until(2)
		s.user("2 replicas", func() { s.replicas = 2 })
		s.until(99)
		return s
	},
	"pause-scale-resume": func() *story {
		s := newStory(8, 2, 0)
		s.user("another template", func() { s.template = 1 })
		s.until(4)
		s.user("spec.paused: true", func() { s.paused = true })
		s.until(99)
		s.user("16 replicas", func() { s.replicas = 16 })
		s.until(99)
		s.user("spec.paused: false", func() { s.paused = false })
		s.until(99)
		return s
	},
	"rollback": func() *story {
		s := newStory(3, 1, 0)
		s.user("another template, whose Machines never become available", func() { s.template, s.broken = 1, 1 })
		s.until(5)
		s.user("rollback to the revision before", func() { s.template = 0 })
		s.until(99)
		return s
	},
	"on-delete": func() *story {
		s := newStory(3, 0, 0)
		s.strategy = clusterv1.OnDeleteMachineDeploymentStrategyType
		s.user("strategy OnDelete, another template", func() { s.template = 1 })
		s.until(99)
		s.user("deletes a Machine of A", func() { s.machine("s000", 0).deleting = true })
		s.until(99)
		s.user("deletes a Machine of A, and wants 2 replicas", func() {
			s.machine("s000", 0).deleting = true
			s.replicas = 2
		})
		s.until(99)
		return s
	},
	"recreate": func() *story {
		s := newStory(3, 0, 0)
		s.recreate = true
		s.user("annotation recreate, another template; a Machine of A drains for long", func() {
			s.template = 1
			s.stuck[s.machine("s000", 1).name] = true
		})
		s.until(99)
		s.user("the drain is over", func() { s.stuck = map[int]bool{} })
		s.until(99)
		return s
	},
	"autoscaler": func() *story {
		s := newStory(4, 1, 0)
		s.user("another template", func() { s.template = 1 })
		s.until(3)
		s.user("autoscaler: a Machine of B and one of A are to go, 2 replicas", func() {
			s.machine("s001", 0).chosen, s.machine("s000", 0).chosen = true, true
			s.replicas = 2
		})
		s.until(99)
		return s
	},
}

// TestTraces holds what the planner does in the documented scenarios against the traces in testdata, for people to
// read. A change of the planner that changes one is seen in review.
func TestTraces(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			observed := story().text.String()
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(observed), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if observed != string(kept) {
				t.Errorf("%s is not what the planner does any more; if the change is meant, run\n"+
					"go test ./core/machinedeployment -run TestTraces -update\nthe planner does:\n%s", path, observed)
			}
		})
	}
}
