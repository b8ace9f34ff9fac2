package machinedeployment

import (
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestPlanNarrowly has views in which one Machine more or less decides.
func TestPlanNarrowly(t *testing.T) {
	tests := map[string]struct {
		view view
		want map[string]int
	}{
		"chosen: the minimum is kept, and what is not available goes": {
			rolling(3, 1, 0, set("a", 1, 1, 0), set("b", 3, 0, 3, current, chosen(1))), map[string]int{"a": 0},
		},
		"chosen: one below the minimum may go where one may be unavailable": {
			rolling(3, 1, 1, set("a", 1, 1, 0), set("b", 3, 0, 3, current, chosen(1))), map[string]int{"a": 0, "b": 2},
		},
		"chosen: outdated ones stay that would be needed if they recovered": {
			rolling(3, 1, 0, set("a", 3, 3, 0, chosen(1)), set("b", 1, 1, 0, current)), nil,
		},
		"chosen: outdated ones go that would not": {
			rolling(3, 1, 0, set("a", 3, 3, 0, chosen(1)), set("b", 1, 0, 1, current)), map[string]int{"a": 2},
		},
		"chosen: one that serves keeps the minimum, and what does not serve goes in its place": {
			rolling(2, 1, 0, set("a", 2, 0, 1, chosen(1), broken(1)), set("b", 1, 0, 1, current)), map[string]int{"a": 1, "a removed": 1},
		},
		"chosen: not one of the younger set either": {
			rolling(
				3,
				1,
				0,
				set("a", 1, 0, 1),
				set("b", 2, 0, 1, chosen(1), broken(1)),
				set("c", 1, 0, 1, current),
			),
			map[string]int{"b": 1, "b removed": 1},
		},
		"chosen: what would be needed if it recovered stays": {
			rolling(2, 1, 0, set("a", 2, 0, 1, chosen(1), broken(1)), set("b", 1, 1, 0, current)), nil,
		},
		"chosen: no more go in its place than would not be needed if they recovered": {
			rolling(3, 2, 0, set("a", 4, 0, 2, chosen(2), broken(2)), set("b", 1, 1, 1, current, going(1))), map[string]int{"a": 2, "a removed": 2},
		},
		"chosen: of two, one goes in its place if the other would be needed": {
			rolling(3, 1, 0, set("a", 3, 0, 1, chosen(1), broken(2)), set("b", 1, 0, 1, current)), map[string]int{"a": 2, "a removed": 1},
		},
		"chosen: of two sets, one gives up one if the other would be needed": {
			rolling(4, 1, 0, set("a", 2, 0, 1, chosen(1), broken(1)), set("b", 2, 0, 1, chosen(1), broken(1)), set("c", 1, 0, 1, current)),
			map[string]int{"a": 1, "a removed": 1},
		},
		"chosen: a set that has looked is not left alone": {
			rolling(
				2,
				1,
				0,
				set("a", 2, 0, 1, chosen(1), broken(1), func(s *setView) { s.reserve = 2 }),
				set("b", 1, 0, 1, current),
			),
			map[string]int{"a": 1, "a removed": 1},
		},
		"chosen: nor is one whose Machine is still going": {
			rolling(2, 1, 0, set("a", 2, 1, 1, going(1), chosen(1), broken(1)), set("b", 1, 0, 1, current)), map[string]int{"a": 1, "a removed": 1},
		},
		"chosen: one that does not serve goes, though too few do": {
			rolling(3, 1, 0, set("a", 2, 1, 1), set("b", 2, 1, 1, current, chosen(1))), map[string]int{"b": 1},
		},
		"chosen: another chosen one that does not serve goes in its place": {
			rolling(2, 1, 0, set("a", 2, 0, 1, chosen(2), broken(1)), set("b", 1, 0, 1, current)), map[string]int{"a": 1, "a removed": 1},
		},
		"chosen: behind one that serves and was not chosen, none is deleted in its place": {
			rolling(3, 1, 0, set("a", 3, 0, 2, chosen(1), broken(1)), set("b", 1, 0, 1, current)), nil,
		},
		"chosen: a set that has not given up yet what it was ordered to is left alone": {
			rolling(3, 1, 0, set("a", 2, 0, 2, chosen(2), broken(1)), set("b", 2, 0, 2, current)), nil,
		},
		"chosen: a set that has not looked yet is left alone": {
			rolling(2, 1, 0, set("a", 2, 0, 1, chosen(1), broken(1), func(s *setView) { s.reserve = 3 }), set("b", 1, 0, 1, current)), nil,
		},
		"chosen: it goes first within the bound, and what is behind it after it": {
			rolling(2, 1, 1, set("a", 2, 0, 1, chosen(1), broken(1)), set("b", 1, 0, 1, current)), map[string]int{"a": 0},
		},
		"chosen: it counts as available as long as it serves": {
			rolling(3, 1, 0, set("a", 2, 0, 2), set("b", 1, 0, 1, chosen(1)), set("c", 1, 0, 1, current)), map[string]int{"b": 0},
		},
		"chosen: a lower number takes it, whatever serves": {
			rolling(1, 1, 0, set("a", 2, 0, 1, chosen(1), broken(1)), set("b", 1, 1, 0, current)), map[string]int{"a": 1},
		},
		"paused: the set that loses most by rounding gets what is left over": {
			pausedRollout(rolling(4, 1, 0, set("a", 1, 0, 1), set("b", 2, 0, 2, current))), map[string]int{"b": 3},
		},
		"paused: of two that lose the same, the larger gets it": {
			pausedRollout(rolling(6, 1, 0, set("a", 1, 0, 1), set("b", 3, 0, 3, current))), map[string]int{"b": 5},
		},
		"paused: of two that lose the same, the larger gets it, outdated or not": {
			pausedRollout(rolling(6, 1, 0, set("a", 3, 0, 3), set("b", 1, 0, 1, current))), map[string]int{"a": 5},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := map[string]int{}
			for _, step := range makePlan(test.view).scale {
				got[step.set] = step.to
				if len(step.remove) > 0 {
					got[step.set+" removed"] = len(step.remove)
				}
			}
			if test.want == nil {
				test.want = map[string]int{}
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}

// TestHistoryIsKeptUntilTheRolloutIsComplete: an earlier set is deleted when all Machines are there, current and
// available, and not before.
func TestHistoryIsKeptUntilTheRolloutIsComplete(t *testing.T) {
	// The deployment keeps no history.
	none := func(s *scope) {
		s.deployment.Annotations = map[string]string{RevisionHistoryLimitAnnotation: "0"}
	}
	tests := map[string]struct {
		outdated, current []*clusterv1.Machine
		change            func(*scope)
		deleted           []string
	}{
		"complete":                    {current: servingAll(3), deleted: []string{"old"}},
		"one is not available":        {current: append(servingAll(2), member("late", 0))},
		"one is being deleted":        {current: append(servingAll(2), going5m(serving("c")))},
		"one is missing":              {current: servingAll(2)},
		"one too many is desired":     {current: servingAll(4)},
		"one too many is still there": {current: servingAll(4), change: func(s *scope) { three := int32(3); s.current.Spec.Replicas = &three }},
		"one is to come":              {current: servingAll(3), change: func(s *scope) { four := int32(4); s.current.Spec.Replicas = &four }},
		"the current set has to be empty": {change: func(s *scope) {
			s.settings.replicas = 0
			s.current.Spec.Replicas = new(int32)
		}, deleted: []string{"old"}},
		"an outdated one is left":      {outdated: servingAll(1), current: servingAll(3), change: func(s *scope) { s.sets[0].Spec.Replicas = new(int32) }},
		"no set is current":            {current: servingAll(3), change: func(s *scope) { s.current = nil }},
		"paused":                       {current: servingAll(3), change: func(s *scope) { s.settings.paused = true }},
		"the set has not looked yet":   {current: servingAll(3), change: func(s *scope) { s.sets[0].Generation = 9 }},
		"the set has Machines to come": {current: servingAll(3), change: func(s *scope) { one := int32(1); s.sets[0].Spec.Replicas = &one }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := rollout(test.outdated, test.current, none)
			s.machines = map[types.UID][]*clusterv1.Machine{"old": test.outdated, "fresh": test.current}
			if test.change != nil {
				test.change(s)
			}
			var names []string
			for _, set := range prunable(s) {
				names = append(names, set.Name)
			}
			g.Expect(names).To(Equal(test.deleted))
		})
	}
}

// TestHistoryIsOfRevisions: of what has served, the latest revision is kept here; what has no revision, or the template of
// the deployment, is no history, and what is on its way out is left alone.
func TestHistoryIsOfRevisions(t *testing.T) {
	old := func(revision, version string) func(*clusterv1.MachineSet) {
		return func(set *clusterv1.MachineSet) {
			set.Annotations = map[string]string{clusterv1.RevisionAnnotation: revision}
			set.Spec.Template.Spec.Version = version
		}
	}
	for name, test := range map[string]struct {
		sets    []func(*clusterv1.MachineSet)
		deleted []string
	}{
		"one revision":           {[]func(*clusterv1.MachineSet){old("1", "v1")}, nil},
		"two revisions":          {[]func(*clusterv1.MachineSet){old("1", "v1"), old("2", "v2")}, []string{"0"}},
		"two, the later first":   {[]func(*clusterv1.MachineSet){old("2", "v2"), old("1", "v1")}, []string{"1"}},
		"no revision":            {[]func(*clusterv1.MachineSet){old("", "v1")}, []string{"0"}},
		"the present template":   {[]func(*clusterv1.MachineSet){old("1", "")}, []string{"0"}},
		"one that is on its way": {[]func(*clusterv1.MachineSet){old("", "v1"), func(set *clusterv1.MachineSet) { set.DeletionTimestamp = ptr.To(metav1.Now()) }}, []string{"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := rollout(nil, servingAll(3), func(s *scope) { s.deployment.Annotations = map[string]string{RevisionHistoryLimitAnnotation: "1"} })
			s.machines = map[types.UID][]*clusterv1.Machine{"fresh": servingAll(3)}
			s.sets = []*clusterv1.MachineSet{s.current}
			for i, change := range test.sets {
				set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), UID: types.UID(strconv.Itoa(i))}}
				set.Spec.Replicas, set.Spec.Template = new(int32), *s.deployment.Spec.Template.DeepCopy()
				change(set)
				s.sets = append(s.sets, set)
			}
			var names []string
			for _, set := range prunable(s) {
				names = append(names, set.Name)
			}
			g.Expect(names).To(Equal(test.deleted))
		})
	}
}
