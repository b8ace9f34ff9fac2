package drain

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

// TestReturningIsObserved: since when pods return, until when they are waited for, and when that is forgotten.
func TestReturningIsObserved(t *testing.T) {
	const interval, grace = 20 * time.Second, 2 * time.Minute
	back := arrival{at: start.Add(-time.Second), returned: true}
	tests := map[string]struct {
		before   returning
		arrivals []arrival
		want     returning
		next     time.Time
	}{
		"nothing has returned":        {arrivals: []arrival{{at: start}}},
		"one has":                     {arrivals: []arrival{back}, want: returning{since: back.at, last: start}, next: back.at.Add(grace)},
		"the first of several counts": {before: returning{since: start}, arrivals: []arrival{back}, want: returning{since: back.at, last: start}, next: back.at.Add(grace)},
		"a later one counts as well":  {before: returning{since: start.Add(-time.Minute)}, arrivals: []arrival{back}, want: returning{since: start.Add(-time.Minute), last: start}, next: start.Add(time.Minute)},
		"none for less than an interval": {
			before: returning{since: start.Add(-time.Minute), last: start.Add(1 - interval)},
			want:   returning{since: start.Add(-time.Minute), last: start.Add(1 - interval)}, next: start.Add(time.Minute),
		},
		"none for an interval": {
			before: returning{since: start.Add(-time.Minute), last: start.Add(-interval)},
			want:   returning{last: start.Add(-interval)},
		},
		"for almost the grace": {before: returning{since: start.Add(1 - grace)}, arrivals: []arrival{back}, want: returning{since: start.Add(1 - grace), last: start}, next: start.Add(1)},
		"for the grace":        {before: returning{since: start.Add(-grace)}, arrivals: []arrival{back}, want: returning{since: start.Add(-grace), last: start, over: true}, next: start},
		"it stays over":        {before: returning{over: true}, arrivals: []arrival{back}, want: returning{since: back.at, last: start, over: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, pods := test.before, map[types.UID]*Pod{}
			r.interval, r.grace, r.arrivals = interval, grace, map[types.UID]arrival{}
			for i, came := range test.arrivals {
				pod := simplePod(fmt.Sprint(i))
				pods[pod.UID], r.arrivals[pod.UID] = pod, came
			}
			g.Expect(r.observe(pods, start)).To(Equal(test.next))
			g.Expect(returning{since: r.since, last: r.last, over: r.over}).To(Equal(test.want))
		})
	}
}

// TestReturningOwnersAreForgottenOnlyInTheirTime: few are remembered permanently, of many those that were seen within the grace.
func TestReturningOwnersAreForgottenOnlyInTheirTime(t *testing.T) {
	const grace = 2 * time.Minute
	tests := map[string]struct {
		pods, owners int
		ago          time.Duration
		left         int
	}{
		"few":                    {0, 16, time.Hour, 16},
		"many":                   {0, 17, time.Hour, 0},
		"few for so many pods":   {4, 24, time.Hour, 24},
		"many for so many pods":  {4, 25, time.Hour, 0},
		"many within the grace":  {0, 17, grace, 17},
		"many just out of it":    {0, 17, grace + 1, 0},
		"many that are very new": {0, 17, 0, 17},
		"not even one":           {4, 0, time.Hour, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, pods := &returning{grace: grace, granted: map[owner]grants{}}, map[types.UID]*Pod{}
			for i := range test.pods {
				pods[types.UID(fmt.Sprint(i))] = simplePod(fmt.Sprint(i))
			}
			for i := range test.owners {
				r.grantedOne(simplePod("a", byOwner(types.UID(fmt.Sprint(i)))), start.Add(-test.ago))
			}
			r.forget(pods, start)
			NewWithT(t).Expect(r.granted).To(HaveLen(test.left))
		})
	}
}

// TestReturningOwnersAreNamed: each once, with what holds for any of its pods that returned, and only for those.
func TestReturningOwnersAreNamed(t *testing.T) {
	g := NewWithT(t)
	of := func(name string, uid types.UID, tolerates bool, change ...func(*Pod)) *Pod {
		return simplePod(name, append([]func(*Pod){byOwner(uid), func(p *Pod) { p.ToleratesCordon = tolerates }}, change...)...)
	}
	pods := []*Pod{
		of("web-1", "web", true), of("web-2", "web", false), of("bound", "bound", false),
		of("db-1", "db", true, using("data")), of("db-2", "db", true), of("first", "first", true),
	}
	r := &returning{arrivals: map[types.UID]arrival{}}
	for _, pod := range pods[:5] {
		r.arrivals[pod.UID] = arrival{returned: true}
	}
	r.arrivals["uid-first"] = arrival{found: true}
	named := func(uid string, tolerates, kept bool) Owner {
		return Owner{Name: "ReplicaSet ns/" + uid, ToleratesCordon: tolerates, Kept: kept}
	}
	g.Expect(r.owners(circumstances{budgeted: noBudget}, pods[:3], pods[3:])).To(Equal([]Owner{
		named("bound", false, false), named("db", true, true), named("web", true, false),
	}))
	g.Expect(r.owners(circumstances{}, pods)).To(Equal([]Owner{
		named("bound", false, false), named("db", true, false), named("web", true, false),
	}), "as long as the budgets are not read nothing is reported of them")
}

// TestReturningAfterAForce: a forced drain deletes each pod once, and those that came after it had begun once more.
func TestReturningAfterAForce(t *testing.T) {
	g := NewWithT(t)
	r := &returning{arrivals: map[types.UID]arrival{"uid-a": {returned: true}, "uid-b": {returned: true, forced: true}}}
	g.Expect(r.sinceForced(simplePod("a"))).To(BeFalse())
	g.Expect(r.sinceForced(simplePod("b"))).To(BeTrue())
	g.Expect((*returning)(nil).sinceForced(simplePod("b"))).To(BeFalse())
	r.forcedAgain()
	g.Expect(r.sinceForced(simplePod("b"))).To(BeFalse())
}
