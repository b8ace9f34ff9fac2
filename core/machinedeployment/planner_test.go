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

// chosen marks n Machines, the next to go.
func chosen(n int) func(*setView) { return func(s *setView) { s.chosen = n } }

// broken adds n Machines that are not available, which go last.
func broken(n int) func(*setView) {
	return func(s *setView) { s.order = append(s.order, make([]bool, n)...) }
}

func recreate(v view) view {
	v.recreate = true
	return v
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
		"nothing is available, none is deleted":        {rolling(3, 1, 0, set("a", 3, 3, 0), set("b", 1, 1, 0, current)), -1, nil},
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

		// Cluster API v1.14.2 computes the second scale-down from the numbers before the first, and so loses the first.
		"on delete: deleted manually and scaled down at once":        {onDelete(rolling(2, 0, 0, set("a", 5, 2, 3, going(2)), set("b", 0, 0, 0, current))), -1, map[string]int{"a": 2}},
		"on delete: deleted in two outdated sets, and scaled down":   {onDelete(rolling(2, 0, 0, set("a", 3, 1, 2, going(1)), set("b", 2, 0, 2), set("c", 0, 0, 0, current))), -1, map[string]int{"a": 0}},
		"on delete: chosen ones go, of whatever set":                 {onDelete(rolling(4, 0, 0, set("a", 3, 0, 3, chosen(1)), set("b", 3, 0, 3, current, chosen(1)))), -1, map[string]int{"a": 2, "b": 2}},
		"on delete: what is not there yet is given up before others": {onDelete(rolling(3, 0, 0, set("a", 2, 0, 2), set("b", 2, 0, 1, current))), -1, map[string]int{"b": 1}},
		"on delete: what is not available goes before what serves":   {onDelete(rolling(3, 0, 0, set("a", 2, 0, 2), set("b", 2, 1, 1, current))), -1, map[string]int{"b": 1}},

		// The surge is counted over what exists: Machines that are being deleted count until they are gone, whichever
		// set they are of (Cluster API's fix 5f4d95e8, which v1.14.2 does not have).
		"surge: a deleting Machine of the outdated set takes the room": {rolling(3, 1, 0, set("a", 2, 1, 2, going(1)), set("b", 1, 0, 1, current)), -1, nil},
		"surge: a deleting Machine of the current set does too":        {rolling(3, 1, 0, set("a", 2, 0, 2), set("b", 2, 1, 1, current, going(1))), -1, nil},
		"surge: a deleting Machine of a third set does too":            {rolling(3, 1, 0, set("a", 0, 1, 0, going(1)), set("b", 2, 0, 2), set("c", 1, 0, 1, current)), -1, nil},

		"chosen: the number alone asks for nothing":             {rolling(3, 1, 0, set("a", 3, 0, 3, current, chosen(1))), -1, nil},
		"chosen: the number goes down by as many":               {rolling(2, 1, 0, set("a", 3, 0, 3, current, chosen(1))), -1, map[string]int{"a": 2}},
		"chosen in a rollout: of the current set":               {rolling(4, 1, 0, set("a", 3, 0, 3), set("b", 3, 0, 3, current, chosen(1))), -1, map[string]int{"a": 2, "b": 2}},
		"chosen in a rollout: of a younger outdated set":        {rolling(4, 1, 0, set("a", 2, 0, 2), set("b", 2, 0, 2, chosen(1)), set("c", 1, 0, 1, current)), -1, map[string]int{"b": 1}},
		"chosen in a rollout: not below the minimum":            {rolling(4, 1, 0, set("a", 3, 0, 3), set("b", 2, 0, 1, current, chosen(1))), -1, nil},
		"chosen in a rollout: no order to grow takes them back": {rolling(4, 2, 0, set("a", 2, 0, 2), set("b", 2, 0, 3, current, chosen(1))), -1, nil},
		"chosen while paused: they go, the others stay":         {pausedRollout(rolling(9, 0, 0, set("a", 6, 0, 6), set("b", 4, 0, 4, current, chosen(1)))), -1, map[string]int{"b": 3}},

		"recreate: all outdated ones go":                             {recreate(rolling(3, 0, 0, set("a", 3, 0, 3))), 0, map[string]int{"a": 0}},
		"recreate: as long as one is there, none comes":              {recreate(rolling(3, 0, 0, set("a", 0, 1, 0, going(1)), set("b", 0, 0, 0, current))), -1, nil},
		"recreate: a set that has not looked yet counts":             {recreate(rolling(3, 0, 0, set("a", 0, 0, 0, func(s *setView) { s.reserve = 3 }), set("b", 0, 0, 0, current))), -1, nil},
		"recreate: all have gone":                                    {recreate(rolling(3, 0, 0, set("a", 0, 0, 0), set("b", 0, 0, 0, current))), -1, map[string]int{"b": 3}},
		"recreate: scaled up outside a rollout":                      {recreate(rolling(5, 0, 0, set("b", 3, 0, 3, current))), -1, map[string]int{"b": 5}},
		"recreate: scaled down in the middle":                        {recreate(rolling(1, 0, 0, set("a", 0, 1, 0, going(1)), set("b", 2, 0, 2, current))), -1, map[string]int{"b": 1}},
		"all at once without recreate: new ones come as old ones go": {rolling(3, 0, 3, set("a", 0, 2, 0, going(2)), set("b", 0, 0, 0, current)), -1, map[string]int{"b": 1}},

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
