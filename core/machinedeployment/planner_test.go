package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// set is a settled set: up are its available Machines, below are ones that are not available and that it would
// delete first.
func set(name string, desired, below, up int, change ...func(*setView)) setView {
	s := setView{name: name, desired: desired, settled: true}
	for range below {
		s.order = append(s.order, false)
	}
	for range up {
		s.order = append(s.order, true)
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func current(s *setView) { s.current = true }

func going(n int) func(*setView) { return func(s *setView) { s.deleting = n } }

func rolling(replicas, surge, unavailable int, sets ...setView) view {
	return view{replicas: replicas, maxSurge: surge, maxUnavailable: unavailable, sets: sets,
		strategy: clusterv1.RollingUpdateMachineDeploymentStrategyType}
}

func onDelete(v view) view {
	v.strategy = clusterv1.OnDeleteMachineDeploymentStrategyType
	return v
}

func pausedRollout(v view) view {
	v.paused = true
	return v
}

func TestPlan(t *testing.T) {
	tests := map[string]struct {
		view   view
		create int
		want   map[string]int
	}{
		"the first set":                                {rolling(3, 1, 0), 3, nil},
		"as it should be":                              {rolling(3, 1, 0, set("a", 3, 0, 3, current)), -1, nil},
		"scaled up":                                    {rolling(5, 1, 0, set("a", 3, 0, 3, current)), -1, map[string]int{"a": 5}},
		"scaled down":                                  {rolling(1, 1, 0, set("a", 3, 0, 3, current)), -1, map[string]int{"a": 1}},
		"to nothing":                                   {rolling(0, 0, 0, set("a", 3, 0, 3, current)), -1, map[string]int{"a": 0}},
		"a rollout begins with the surge":              {rolling(3, 1, 0, set("a", 3, 0, 3)), 1, nil},
		"a rollout begins without a surge":             {rolling(3, 0, 1, set("a", 3, 0, 3)), 0, map[string]int{"a": 2}},
		"a new one is not available yet":               {rolling(3, 1, 0, set("a", 3, 0, 3), set("b", 1, 1, 0, current)), -1, nil},
		"a new one is available":                       {rolling(3, 1, 0, set("a", 3, 0, 3), set("b", 1, 0, 1, current)), -1, map[string]int{"a": 2}},
		"an old one is on its way out":                 {rolling(3, 1, 0, set("a", 2, 1, 2, going(1)), set("b", 1, 0, 1, current)), -1, nil},
		"an old one has gone":                          {rolling(3, 1, 0, set("a", 2, 0, 2), set("b", 1, 0, 1, current)), -1, map[string]int{"b": 2}},
		"an old one is not available, a new one is":    {rolling(3, 1, 0, set("a", 3, 1, 2), set("b", 1, 0, 1, current)), -1, map[string]int{"a": 2}},
		"nothing is available, nobody is killed":       {rolling(3, 1, 0, set("a", 3, 3, 0), set("b", 1, 1, 0, current)), -1, nil},
		"nothing is available, one may be":             {rolling(3, 0, 1, set("a", 3, 3, 0)), 0, map[string]int{"a": 2}},
		"the oldest set shrinks first":                 {rolling(3, 1, 0, set("a", 2, 0, 2), set("b", 1, 0, 1), set("c", 1, 0, 1, current)), -1, map[string]int{"a": 1}},
		"a broken middle set goes first":               {rolling(3, 1, 0, set("a", 3, 0, 3), set("b", 1, 1, 0)), 0, map[string]int{"b": 0}},
		"back to the old template":                     {rolling(3, 1, 0, set("a", 2, 0, 2, current), set("b", 1, 0, 1)), -1, map[string]int{"a": 3}},
		"scaled down during a rollout":                 {rolling(2, 1, 0, set("a", 3, 0, 3), set("b", 1, 0, 1, current)), -1, map[string]int{"a": 1}},
		"a set that has not looked yet keeps its room": {rolling(3, 1, 0, set("a", 2, 0, 2, func(s *setView) { s.reserve = 3 }), set("b", 1, 0, 1, current)), -1, nil},

		"on delete: nothing by itself":            {onDelete(rolling(3, 0, 0, set("a", 3, 0, 3))), 0, nil},
		"on delete: one is being deleted":         {onDelete(rolling(3, 0, 0, set("a", 3, 1, 2, going(1)), set("b", 0, 0, 0, current))), -1, map[string]int{"a": 2}},
		"on delete: one has gone":                 {onDelete(rolling(3, 0, 0, set("a", 2, 0, 2), set("b", 0, 0, 0, current))), -1, map[string]int{"b": 1}},
		"on delete: one is still being created":   {onDelete(rolling(3, 0, 0, set("a", 3, 0, 2, func(s *setView) { s.settled = false }), set("b", 0, 0, 0, current))), -1, nil},
		"on delete: scaled up":                    {onDelete(rolling(5, 0, 0, set("a", 3, 0, 3), set("b", 0, 0, 0, current))), -1, map[string]int{"b": 2}},
		"on delete: scaled down, the old ones go": {onDelete(rolling(2, 0, 0, set("a", 2, 0, 2), set("b", 1, 0, 1, current))), -1, map[string]int{"a": 1}},

		"paused: no new set":                 {pausedRollout(rolling(3, 1, 0, set("a", 3, 0, 3))), -1, nil},
		"paused: scaled up":                  {pausedRollout(rolling(5, 1, 0, set("a", 3, 0, 3))), -1, map[string]int{"a": 5}},
		"paused half-way: the mixture stays": {pausedRollout(rolling(10, 2, 0, set("a", 8, 0, 8), set("b", 4, 0, 4, current))), -1, nil},
		"paused half-way: scaled up":         {pausedRollout(rolling(24, 2, 0, set("a", 8, 0, 8), set("b", 4, 0, 4, current))), -1, map[string]int{"a": 16, "b": 8}},
		"paused half-way: scaled down":       {pausedRollout(rolling(4, 2, 0, set("a", 8, 0, 8), set("b", 4, 0, 4, current))), -1, map[string]int{"a": 4, "b": 2}},
		"paused half-way: to nothing":        {pausedRollout(rolling(0, 2, 0, set("a", 8, 0, 8), set("b", 4, 0, 4, current))), -1, map[string]int{"a": 0, "b": 0}},
		"paused at nothing: scaled up":       {pausedRollout(rolling(2, 1, 0, set("a", 0, 0, 0), set("b", 0, 0, 0, current))), -1, map[string]int{"b": 2}},
		"paused before anything: nothing":    {pausedRollout(rolling(2, 1, 0)), -1, nil},
		"paused at nothing, none is current": {pausedRollout(rolling(2, 1, 0, set("a", 0, 0, 0), set("b", 0, 0, 0))), -1, map[string]int{"b": 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := makePlan(test.view)
			g.Expect(got.create).To(Equal(test.create >= 0))
			if got.create {
				g.Expect(got.createReplicas).To(Equal(test.create))
			}
			scaled := map[string]int{}
			for _, intent := range got.scale {
				scaled[intent.set] = intent.to
				g.Expect(intent.reason).NotTo(BeEmpty())
			}
			if test.want == nil {
				test.want = map[string]int{}
			}
			g.Expect(scaled).To(Equal(test.want))
		})
	}
}
