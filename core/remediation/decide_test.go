package remediation_test

import (
	"slices"
	"testing"
	"testing/quick"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	. "millwright.dev/test/coretest/builder"
)

var now = Epoch

// input is one that lets everything go; change makes it less so.
func input(change func(*remediation.Input), candidates ...remediation.Candidate) remediation.Input {
	unlimited := remediation.Limit{Max: remediation.Unlimited}
	in := remediation.Input{
		Now: now, Deployment: unlimited, Cluster: unlimited, Stop: unlimited, Machines: 10, Unhealthy: len(candidates),
		Retry: remediation.Retry{Max: 3, Period: 10 * time.Minute, MinHealthy: time.Hour}, Candidates: candidates,
	}
	if change != nil {
		change(&in)
	}
	return in
}

// again is a Machine that is the replacement of so many that failed before.
func again(retry int, ago time.Duration, change ...func(*remediation.Candidate)) remediation.Candidate {
	c := remediation.Candidate{
		Name: "m", Reason: "NodeStartupTimeout", Message: "no Node came", FailedAt: now,
		Replaces: &remediation.Record{Machine: "before", Since: now.Add(-ago), Retry: retry, Reason: "NodeStartupTimeout"},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestDecide(t *testing.T) {
	well := func(d time.Duration) func(*remediation.Candidate) {
		return func(c *remediation.Candidate) { c.Replaces.Available = ptr.To(now.Add(-d)) }
	}
	frozen := freeze.State{Reason: freeze.TargetAPIServerUnreachableReason, Message: "it does not answer", Since: now.Add(-time.Minute)}
	tests := map[string]struct {
		change  func(*remediation.Input)
		machine remediation.Candidate
		reason  string
		message []string
		retry   int
		next    time.Duration
	}{
		"first":            {machine: remediation.Candidate{Name: "m"}},
		"frozen":           {func(in *remediation.Input) { in.Frozen = frozen }, remediation.Candidate{Name: "m"}, "Frozen", []string{"since 2026-11-20T11:59:00Z (TargetAPIServerUnreachable): it does not answer"}, 0, 0},
		"frozen and begun": {func(in *remediation.Input) { in.Frozen = frozen }, remediation.Candidate{Name: "m", Begun: true}, "Frozen", nil, 0, 0},
		"frozen for a time": {func(in *remediation.Input) {
			in.Frozen = freeze.State{Reason: freeze.RecoveringReason, Until: now.Add(time.Minute)}
		}, remediation.Candidate{Name: "m"}, "Frozen", nil, 0, time.Minute},
		"wrong limit":               {func(in *remediation.Input) { in.Cluster.SpecError = "x is wrong: correct it" }, remediation.Candidate{Name: "m"}, "InvalidLimit", []string{"x is wrong: correct it"}, 0, 0},
		"wrong retry":               {func(in *remediation.Input) { in.RetrySpecError = "x is wrong: correct it" }, remediation.Candidate{Name: "m"}, "InvalidLimit", nil, 0, 0},
		"as many unhealthy as may":  {func(in *remediation.Input) { in.Unhealthy, in.Stop.Max = 4, 4 }, remediation.Candidate{Name: "m"}, "", nil, 0, 0},
		"more unhealthy than may":   {func(in *remediation.Input) { in.Unhealthy, in.Stop.Max = 5, 4 }, remediation.Candidate{Name: "m"}, "TooManyUnhealthy", []string{"5 of 10 Machines", "the limit is 4 ("}, 0, 0},
		"deployment full":           {func(in *remediation.Input) { in.Held, in.Deployment.Max = map[string]bool{"x": true}, 1 }, remediation.Candidate{Name: "m"}, "MaxInFlight", []string{"allows 1 replacement at once"}, 0, 0},
		"Cluster full":              {func(in *remediation.Input) { in.InCluster, in.Cluster.Max = 2, 2 }, remediation.Candidate{Name: "m"}, "MaxInFlightOfCluster", []string{"allows 2 replacements at once"}, 0, 0},
		"none allowed":              {func(in *remediation.Input) { in.Deployment.Max = 0 }, remediation.Candidate{Name: "m", Begun: true}, "MaxInFlight", []string{"allows none"}, 0, 0},
		"none allowed in Cluster":   {func(in *remediation.Input) { in.Cluster.Max = 0 }, remediation.Candidate{Name: "m", Begun: true}, "MaxInFlightOfCluster", []string{"allows none"}, 0, 0},
		"begun where it is full":    {func(in *remediation.Input) { in.Held, in.Deployment.Max = map[string]bool{"m": true}, 1 }, remediation.Candidate{Name: "m", Begun: true}, "", nil, 0, 0},
		"holds a place":             {func(in *remediation.Input) { in.Held, in.Deployment.Max = map[string]bool{"m": true}, 1 }, again(0, time.Hour), "", nil, 1, 0},
		"retry too soon":            {nil, again(0, time.Minute), "RetryPeriod", []string{"12:09:00Z"}, 1, 9 * time.Minute},
		"retry in time":             {nil, again(0, 10*time.Minute), "", nil, 1, 0},
		"retry of the future":       {nil, again(0, -time.Hour), "", nil, 1, 0},
		"last retry":                {nil, again(2, time.Hour), "", nil, 3, 0},
		"one too many":              {nil, again(3, time.Hour), "MaxRetryReached", []string{"Gave up after 4 failed replacements", "max-retry is 3", "All failed the same way: NodeStartupTimeout: no Node came"}, 4, 0},
		"otherwise each time":       {nil, again(3, time.Hour, func(c *remediation.Candidate) { c.Reason = "Vanished" }), "MaxRetryReached", []string{"The last failure: "}, 4, 0},
		"without limit":             {func(in *remediation.Input) { in.Retry.Max = -1 }, again(99, time.Hour), "", nil, 100, 0},
		"no retries":                {func(in *remediation.Input) { in.Retry.Max = 0 }, again(0, time.Hour), "MaxRetryReached", []string{"1 failed replacement "}, 1, 0},
		"well for too short a time": {nil, again(3, 2*time.Hour, well(time.Hour-1)), "MaxRetryReached", nil, 4, 0},
		"well for long enough":      {nil, again(3, 2*time.Hour, well(time.Hour)), "", nil, 0, 0},
		"never well, for long":      {nil, again(3, 99*time.Hour), "MaxRetryReached", nil, 4, 0},
		"demanded":                  {nil, again(3, time.Second, func(c *remediation.Candidate) { c.Demanded = true }), "", nil, 0, 0},
		"of another template":       {nil, again(3, time.Second, func(c *remediation.Candidate) { c.Elsewhere = true }), "", nil, 0, 0},
		"begun before the period":   {nil, again(0, time.Second, func(c *remediation.Candidate) { c.Begun = true }), "", nil, 1, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := remediation.Decide(input(test.change, test.machine))
			g.Expect(d.Results).To(HaveLen(1))
			got := d.Results[0]
			g.Expect(got.Blocker.Reason).To(Equal(test.reason))
			g.Expect(got.Allowed()).To(Equal(test.reason == ""))
			for _, text := range test.message {
				g.Expect(got.Blocker.Message).To(ContainSubstring(text))
			}
			g.Expect(got.Record.Retry).To(Equal(test.retry))
			g.Expect(got.Record.Machine).To(Equal("m"))
			if test.next == 0 {
				g.Expect(d.Next).To(BeZero())
			} else {
				g.Expect(d.Next).To(Equal(now.Add(test.next)))
			}
		})
	}
}

// TestDecideKeepsToItsLimits: whatever comes in, no more places are taken than there are, fresh ones are counted, and nothing is
// allowed in a freeze.
func TestDecideKeepsToItsLimits(t *testing.T) {
	property := func(held, inOthers, limit, inCluster uint8, names []bool, frozen bool) bool {
		in := input(func(in *remediation.Input) {
			in.Held = map[string]bool{}
			for n := range int(held % 8) {
				in.Held[string(rune('a'+n))] = true
			}
			in.InCluster = len(in.Held) + int(inOthers%8)
			in.Deployment.Max, in.Cluster.Max = int(limit%12), int(inCluster%16)
			if frozen {
				in.Frozen.Reason = freeze.RecoveringReason
			}
		})
		for n, begun := range names[:min(len(names), 20)] {
			in.Candidates = append(in.Candidates, remediation.Candidate{Name: string(rune('a' + n)), Begun: begun && in.Held[string(rune('a'+n))]})
		}
		d := remediation.Decide(in)
		fresh := 0
		for _, v := range d.Results {
			if v.Allowed() && frozen || v.Fresh && (!v.Allowed() || in.Held[v.Name]) {
				return false
			}
			if v.Fresh {
				fresh++
			}
		}
		return d.InFlight == len(in.Held)+fresh && d.InCluster == in.InCluster+fresh &&
			(fresh == 0 || d.InFlight <= in.Deployment.Max && d.InCluster <= in.Cluster.Max)
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 5000}); err != nil {
		t.Fatal(err)
	}
}

// TestTheTextOfThoseThatWaitIsTheSame: a hundred that wait are not written to with each that is done.
func TestTheTextOfThoseThatWaitIsTheSame(t *testing.T) {
	g := NewWithT(t)
	text := func(held ...string) string {
		in := input(func(in *remediation.Input) {
			in.Held, in.Deployment.Max = map[string]bool{}, 2
			for _, name := range held {
				in.Held[name] = true
			}
		}, remediation.Candidate{Name: "m"})
		return remediation.Decide(in).Results[0].Blocker.Message
	}
	g.Expect(text("a", "b")).To(Equal(text("c", "d", "e")))
	g.Expect(text("a", "b")).NotTo(BeEmpty())
}

func TestInFlight(t *testing.T) {
	set := func(replicas int, records []remediation.Record, list ...*clusterv1.Machine) remediation.Set {
		return remediation.Set{Replicas: replicas, Records: records, Machines: list}
	}
	of := func(names ...string) []remediation.Record {
		var records []remediation.Record
		for _, name := range names {
			records = append(records, remediation.Record{Machine: name})
		}
		return records
	}
	outgoing := set(1, nil, Machine("n", replaces("a"), Unavailable))
	outgoing.Outgoing = true
	tests := map[string]struct {
		sets                []remediation.Set
		held, owed, settled []string
		recovered           []string
	}{
		"nothing":                        {[]remediation.Set{set(1, nil, Machine("a"))}, nil, nil, nil, nil},
		"going":                          {[]remediation.Set{set(1, nil, Machine("a", begun, Deleting))}, []string{"a"}, nil, nil, nil},
		"going for another reason":       {[]remediation.Set{set(1, nil, Machine("a", Unhealthy, Deleting))}, nil, nil, nil, nil},
		"recorded":                       {[]remediation.Set{set(1, of("a"), Machine("a", handed))}, []string{"a"}, nil, nil, nil},
		"recorded and well again":        {[]remediation.Set{set(1, of("a"), Machine("a"))}, []string{"a"}, nil, nil, []string{"a"}},
		"well again, and one is lacking": {[]remediation.Set{set(2, of("a"), Machine("a"))}, []string{"a"}, nil, nil, []string{"a"}},
		"recorded and going":             {[]remediation.Set{set(1, of("a"), Machine("a", begun, Deleting))}, []string{"a"}, nil, nil, nil},
		"recorded and deleted by others": {[]remediation.Set{set(1, of("a"), Machine("a", Deleting))}, []string{"a"}, nil, nil, nil},
		"gone":                           {[]remediation.Set{set(1, of("a"))}, []string{"a"}, []string{"a"}, nil, nil},
		"gone, and fewer are wanted":     {[]remediation.Set{set(1, of("a", "b"), Machine("x"))}, nil, nil, []string{"a", "b"}, nil},
		"gone, and one fewer is wanted":  {[]remediation.Set{set(2, of("a", "b"), Machine("x"))}, []string{"a"}, []string{"a"}, []string{"b"}, nil},
		"gone, and the place is that of one that goes": {
			[]remediation.Set{set(2, of("a"), Machine("x"), Machine("y", Deleting))}, []string{"a"}, []string{"a"}, nil, nil,
		},
		"gone, and the cache shows one that was replaced": {
			[]remediation.Set{set(2, of("a"), Machine("y", begun, Deleting), Machine("n", replaces("y", wasAvailable)))},
			[]string{"a", "y"}, []string{"a"}, nil, nil,
		},
		"gone, and with one that goes fewer are wanted": {
			[]remediation.Set{set(1, of("a"), Machine("x"), Machine("y", Deleting))}, nil, nil, []string{"a"}, nil,
		},
		"replaced, and not up yet": {[]remediation.Set{set(1, of("a"), Machine("n", replaces("a"), Unavailable))}, []string{"n"}, nil, []string{"a"}, nil},
		"replaced":                 {[]remediation.Set{set(1, of("a"), Machine("n", replaces("a", wasAvailable)))}, nil, nil, []string{"a"}, nil},
		"replaced, and there all the same": {
			[]remediation.Set{set(2, of("a"), Machine("a"), Machine("n", replaces("a", wasAvailable)))}, nil, nil, []string{"a"}, nil,
		},
		"up, and that is not written":    {[]remediation.Set{set(1, of("a"), Machine("n", replaces("a")))}, []string{"n"}, nil, []string{"a"}, nil},
		"one has too many, one too few":  {[]remediation.Set{set(0, nil, Machine("x", Deleting)), set(1, of("a"))}, []string{"a"}, []string{"a"}, nil, nil},
		"up once":                        {[]remediation.Set{set(1, nil, Machine("n", replaces("a", wasAvailable), Unavailable))}, nil, nil, nil, nil},
		"a replacement that is replaced": {[]remediation.Set{set(1, of("n"), Machine("n", replaces("a"), Unavailable, begun, Deleting))}, []string{"n"}, nil, nil, nil},
		"of a rollout":                   {[]remediation.Set{outgoing}, nil, nil, nil, nil},
		"made up for by another set":     {[]remediation.Set{set(0, of("a")), set(1, nil)}, []string{"a"}, []string{"a"}, nil, nil},
		"made up for already":            {[]remediation.Set{set(0, of("a")), set(1, nil, Machine("n", replaces("a"), Unavailable))}, []string{"n"}, nil, []string{"a"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := remediation.InFlight(test.sets)
			var owed []string
			for _, record := range f.Owed {
				owed = append(owed, record.Machine)
			}
			g.Expect(sorted(f.Held)).To(Equal(test.held), "held")
			g.Expect(owed).To(Equal(test.owed), "owed")
			g.Expect(sorted(f.Settled)).To(Equal(test.settled), "settled")
			g.Expect(sorted(f.Recovered)).To(Equal(test.recovered), "recovered")
		})
	}
}

func sorted(set map[string]bool) []string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
