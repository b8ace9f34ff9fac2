package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
)

// unsettled is a set that has not counted its Machines yet.
func unsettled(s *setView) { s.settled = false }

// reserving is a set that has not looked at its last decrease yet, which was from n.
func reserving(n int) func(*setView) { return func(s *setView) { s.reserve = n } }

// TestPlanOfOddViews has views that hardly ever come about, in which one operator of the planner decides. They were found by
// comparing the plans of random views with those of the planner with that operator changed.
func TestPlanOfOddViews(t *testing.T) {
	for name, test := range map[string]struct {
		view view
		want map[string]int
	}{
		"on delete: a set that has more Machines than its number is not raised to them": {onDelete(rolling(2, 2, 0, set("a", 0, 0, 1))), nil},
		"on delete: a chosen one goes where one may be unavailable": {
			onDelete(rolling(2, 1, 1, set("a", 1, 0, 1), set("b", 2, 0, 1, current, chosen(1), broken(1)))), map[string]int{"b": 1},
		},
		"on delete: a chosen one stays that is needed": {
			onDelete(rolling(2, 1, 0, set("a", 1, 0, 1), set("b", 2, 0, 1, current, chosen(1), broken(1)))), map[string]int{"a": 0},
		},
		"on delete: more may be unavailable than there are replicas": {
			onDelete(rolling(1, 2, 2, set("a", 3, 0, 1, current, chosen(2), broken(1)), set("b", 4, 1, 0))), map[string]int{"a": 0, "b": 1},
		},
		"on delete: a set that has not looked at its last decrease does not grow": {onDelete(rolling(7, 3, 3, set("a", 3, 0, 0, current, reserving(4)))), nil},
		"on delete: what does not exist yet is given up before what does": {
			onDelete(rolling(1, 1, 1, set("a", 2, 0, 0, current), set("b", 7, 1, 0, unsettled))), map[string]int{"a": 0, "b": 1},
		},
		"paused: what would replace Machines that are being deleted is given up first": {
			pausedRollout(rolling(3, 0, 0, set("a", 7, 2, 0, going(1), chosen(1), unsettled), set("b", 6, 0, 1, chosen(1), reserving(5)))),
			map[string]int{"a": 1, "b": 2},
		},
		"paused: of what does not exist yet no more is given up than is too many": {
			pausedRollout(rolling(3, 1, 2, set("a", 5, 0, 2, unsettled, reserving(5)), set("b", 5, 0, 0, current))), map[string]int{"a": 2, "b": 2},
		},
		"paused: chosen ones that do not serve go, and no others": {
			pausedRollout(rolling(5, 2, 2, set("a", 4, 0, 1, unsettled), set("b", 2, 2, 0, chosen(2), reserving(4)))), map[string]int{"b": 1},
		},
		"paused: one set alone keeps no surge": {pausedRollout(rolling(1, 1, 2, set("a", 3, 0, 0, current))), map[string]int{"a": 1}},
		"paused: what serves nowhere is shared out": {
			pausedRollout(rolling(1, 1, 1, set("a", 7, 2, 0, current), set("b", 6, 2, 0))), map[string]int{"a": 1, "b": 1},
		},
		"paused: an equal share that keeps all that serve is taken": {
			pausedRollout(rolling(2, 0, 1, set("a", 4, 3, 0), set("b", 5, 2, 1, current, going(2), reserving(1)))), map[string]int{"a": 1, "b": 1},
		},
		"paused: an equal share that costs one that serves is not": {
			pausedRollout(rolling(1, 1, 0, set("a", 4, 1, 1, going(1)), set("b", 4, 1, 2, current, unsettled))), map[string]int{"a": 0, "b": 2},
		},
		"paused: a set grows by what fits beside the others": {
			pausedRollout(rolling(4, 1, 0, set("a", 1, 2, 2, going(1), chosen(1), unsettled), set("b", 1, 1, 0, current, unsettled))),
			map[string]int{"a": 3},
		},
		"paused at nothing: the current set grows, be it the first or the last": {
			pausedRollout(rolling(2, 0, 3, set("a", 0, 2, 0, current, reserving(3)), set("b", 0, 1, 2, chosen(1)))), map[string]int{"a": 2},
		},
		"a set that has more Machines than its number keeps them": {onDelete(rolling(7, 0, 1, set("a", 0, 0, 1, current))), map[string]int{"a": 7}},
		"one that is being deleted is not one that a mark costs":  {onDelete(rolling(4, 3, 3, set("a", 1, 2, 0, current, going(1), chosen(1)))), map[string]int{"a": 4}},
		"an order for Machines that are not made is taken back once": {
			rolling(3, 1, 2, set("a", 7, 0, 0), set("b", 2, 0, 1, current)), map[string]int{"a": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]int{}
			for _, step := range makePlan(test.view).scale {
				got[step.set] = step.to
			}
			if test.want == nil {
				test.want = map[string]int{}
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}
