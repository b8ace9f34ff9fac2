package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// lineageAt is a lineage of Cluster c.
func lineageAt(epoch string, after time.Duration) string {
	return driver.Lineage{Cluster: "c", Epoch: epoch, At: testStart.Add(after)}.String()
}

// A copy of the management cluster is seen by what it marks while this one reigns, whether marks show names or digests; not by what a user
// else's namespace claims, nor by a mark that is of its own time.
func TestWhatShowsACopy(t *testing.T) {
	copied := lineageAt("copy", 90*time.Minute)
	for name, test := range map[string]struct {
		lineage, owner string
		change         func(*World)
		want           bool
	}{
		"marked meanwhile by another":             {lineage: copied, want: true},
		"where marks have digests":                {lineage: copied, owner: driver.OwnerDigest("ns/m"), want: true},
		"with an owner of another namespace":      {lineage: copied, owner: "else/m"},
		"of an epoch before this one":             {lineage: lineageAt("then", 90*time.Minute), want: true},
		"right after another has taken over":      {lineage: lineageAt("copy", time.Hour+clockSkew-time.Second)},
		"after the clocks may differ no more":     {lineage: lineageAt("copy", time.Hour+clockSkew), want: true},
		"after the latest scan":                   {lineage: lineageAt("copy", 2*time.Hour)},
		"of a time that two epochs cover":         {lineage: lineageAt("then", 90*time.Minute), change: func(w *World) { w.Record.Epochs[0].LastScan = testStart.Add(3 * time.Hour).Unix() }},
		"no lineage":                              {lineage: ""},
		"of a Cluster that is not here":           {lineage: copied, change: func(w *World) { clear(w.Clusters) }},
		"so, where marks have digests":            {lineage: copied, owner: driver.OwnerDigest("ns/m"), change: func(w *World) { clear(w.Clusters) }},
		"by an identity that is for others alone": {lineage: copied, change: func(w *World) { w.Denies = func(driver.Scope, string) bool { return true } }},
	} {
		t.Run(name, func(t *testing.T) {
			w, f, _ := orphan()
			f.Lineage = test.lineage
			if test.owner != "" {
				f.Owner = test.owner
			}
			if test.change != nil {
				test.change(w)
			}
			want := map[types.UID]bool{}
			if test.want {
				want["c"] = true
			}
			NewWithT(t).Expect(contested(w, []Found{f})).To(Equal(want))
		})
	}
}

// What of a Cluster is certainly unclaimed while it may have been paused decides whether its marks prove anything from then on.
func TestWhatIsCertainlyUnclaimed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*World, *Found)
		want   bool
	}{
		"certain":                       {func(*World, *Found) {}, true},
		"without a lineage":             {func(_ *World, f *Found) { f.Lineage = "" }, false},
		"ended":                         {func(_ *World, f *Found) { f.State = driverv1.InstanceTerminated }, false},
		"claimed":                       {func(w *World, _ *Found) { w.Claims.add(Claim{UID: "u", Handle: driver.Handle{Owner: "ns/m"}}) }, false},
		"of a Cluster that is not here": {func(w *World, _ *Found) { clear(w.Clusters) }, false},
		"of an identity for others":     {func(w *World, _ *Found) { w.Denies = func(driver.Scope, string) bool { return true } }, false},
		"not covered by its epoch":      {func(_ *World, f *Found) { f.Lineage = lineageAt("then", time.Hour) }, false},
		"unproven before": {func(w *World, _ *Found) {
			w.Record.Clusters = []KnownCluster{{UID: "c", UnprovenUntil: testStart.Add(time.Hour).Unix()}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w, f, _ := orphan()
			test.change(w, &f)
			found, complete := w.unclaimed(w.Record, []*list{{found: []Found{f}}, {}})
			g.Expect(found["c"]).To(Equal(test.want))
			g.Expect(complete).To(BeTrue())
			_, complete = w.unclaimed(w.Record, []*list{{err: errHangs}, {found: []Found{f}}})
			g.Expect(complete).To(BeFalse(), "whichever list is not whole")
		})
	}
}

// What a scan has seen of a Cluster goes into the record, so that it counts after a restart.
func TestADisputeIsRecorded(t *testing.T) {
	g := NewWithT(t)
	w, _, _ := orphan()
	w.Disputed = map[types.UID]bool{"c": true}
	next := w.Record.examined(w, w.Now, nil)
	g.Expect(next.Clusters).To(ConsistOf(And(HaveField("Disputed", w.Now.Unix()), HaveField("Contested", BeZero()))))
	w.persisted(next, "now")
	g.Expect(w.Disputed["c"]).To(BeTrue())
	w.Now = w.Now.Add(keepContest)
	w.persisted(next, "now")
	g.Expect(w.Disputed["c"]).To(BeFalse())
}

// An instance is disputed if it carries neither what this process has written nor what was there before, but the mark of another owner.
func TestWhoseMarkIsAnothers(t *testing.T) {
	for name, test := range map[string]struct {
		now  string
		want bool
	}{
		"ours":                                {lineageAt("now", time.Hour), false},
		"as it was before, in a list of then": {foreignLineage, false},
		"of another record":                   {"c_elsewhere_1", true},
		"of another Cluster":                  {driver.Lineage{Cluster: "d", Epoch: "now", At: testStart.Add(time.Hour)}.String(), true},
		"taken away":                          {"", false},
		"no lineage":                          {"mine", false},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			w, f, _ := orphan()
			w.Claims.add(Claim{UID: "u", Namespace: "ns", Cluster: "green", Handle: driver.Handle{Owner: "ns/m", OwnerUID: "u"}})
			i.collector.scope(testScope).taken[f.key()] = takeover{object: "u", before: foreignLineage}
			f.Lineage = test.now
			for range 2 {
				i.collector.dispute(w, []*list{{scope: testScope, found: []Found{f}}})
			}
			i.Expect(w.Disputed["c"]).To(Equal(test.want))
			i.Expect(i.events).To(HaveLen(map[bool]int{true: 1}[test.want]), "reported once")
		})
	}
}

// That a takeover was disputed is reported again if the instance gets to another object.
func TestADisputeOfAnotherObjectIsReportedAgain(t *testing.T) {
	g := NewWithT(t)
	_, f, _ := orphan()
	s := &scope{taken: map[string]takeover{f.key(): {object: "u", reported: true}}}
	takes := func(uid types.UID) {
		s.takeOver(&list{found: []Found{f}}, map[Cluster][]Claim{{}: {{UID: uid, Handle: driver.Handle{ProviderID: f.ProviderID}}}})
	}
	takes("u")
	g.Expect(s.taken[f.key()].reported).To(BeTrue())
	takes("v")
	g.Expect(s.taken[f.key()].reported).To(BeFalse())
}

// A launch record that names the UID of another object changes nothing about where that is, nor does a digest show another's namespace.
func TestAForgedRecordMovesNoOrigin(t *testing.T) {
	g := NewWithT(t)
	w := &World{
		Clusters: map[types.UID]Cluster{"c": {UID: "c", Namespace: "ns", Name: "green"}, "e": {UID: "e", Namespace: "else", Name: "red"}},
		Claims:   newClaims(),
	}
	w.Claims.add(Claim{UID: "v", Namespace: "ns", Cluster: "green", Handle: driver.Handle{Owner: "ns/v", OwnerUID: "v"}})
	w.Claims.add(Claim{UID: "x", Namespace: "else", Cluster: "red", Handle: driver.Handle{Owner: "else/x", OwnerUID: "v"}})
	w.Claims.add(Claim{UID: "y", Namespace: "else", Cluster: "red", Handle: driver.Handle{Owner: "else/y"}})
	for range 20 { // whatever comes first
		w.learn(map[types.UID]origin{"old": {"c", "ns", "ns/old"}}, map[types.UID]types.UID{"old": "e"}, []Stray{{"v", "e"}})
		g.Expect(w.Origins["v"]).To(Equal(origin{"c", "ns", "ns/v"}))
		g.Expect(w.Origins["old"]).To(Equal(origin{"c", "ns", "ns/old"}))
		g.Expect(w.Origins).NotTo(HaveKey(types.UID("")))
	}
	of := func(owner string) Found { return Found{Instance: driver.Instance{OwnerUID: "old", Owner: owner}} }
	g.Expect(w.namespaceOf(of(driver.OwnerDigest("ns/old")))).To(Equal("ns"))
	g.Expect(w.namespaceOf(of(driver.OwnerDigest("ns/other")))).To(BeEmpty(), "the mark names another")
	w.Origins["old"] = origin{cluster: "c", namespace: "ns"}
	g.Expect(w.namespaceOf(of(driver.OwnerDigest("")))).To(BeEmpty(), "there is no name")
}

// A stray is in the record once, as long as it is one.
func TestStrays(t *testing.T) {
	g := NewWithT(t)
	w, f, _ := orphan()
	w.Origins = map[types.UID]origin{"u": {cluster: "c", namespace: "ns", owner: "ns/m"}}
	lists := func(change func(*Found)) []*list {
		changed := f
		changed.Lineage = foreignLineage
		change(&changed)
		return []*list{{found: []Found{changed}}}
	}
	stray := lists(func(*Found) {})
	r := w.Record.strayed(w, stray)
	g.Expect(r.Strays).To(Equal([]Stray{{"u", "c"}}))
	g.Expect(r.strayed(w, stray).Strays).To(HaveLen(1), "not once more with each scan")
	g.Expect(Record{}.strayed(w, lists(func(f *Found) { f.State = driverv1.InstanceTerminating })).Strays).To(BeEmpty())
	g.Expect(Record{}.strayed(w, lists(func(f *Found) { f.Lineage = lineageAt("then", time.Minute) })).Strays).To(BeEmpty(), "it is an orphan")
	w.Claims.add(Claim{UID: "x", Handle: driver.Handle{ProviderID: f.ProviderID}})
	g.Expect(Record{}.strayed(w, stray).Strays).To(BeEmpty(), "an object claims it")
}

// Of two Clusters in a namespace one that is not paused suffices to report what has no lineage, in whatever order they are looked at.
func TestOneOfSeveralClustersIsPaused(t *testing.T) {
	for range 20 {
		w, f, seen := orphan()
		f.Lineage = ""
		w.Clusters["c"] = Cluster{Namespace: "ns", UID: "c", Paused: true}
		w.Clusters["d"], w.Clusters["e"] = Cluster{Namespace: "else", UID: "d"}, Cluster{Namespace: "else", UID: "e"}
		NewWithT(t).Expect(Decide(w, f, seen)).To(Equal(Paused))
		w.Clusters["f"] = Cluster{Namespace: "ns", UID: "f"}
		NewWithT(t).Expect(Decide(w, f, seen)).To(Equal(NoLineage))
	}
}

// A cleanup ends whatever carries a mark, so it spares marks of which something is not due; instances are no such thing, as the driver
// keeps what one uses.
func TestWhatACleanupSpares(t *testing.T) {
	g := NewWithT(t)
	_, f, _ := orphan()
	volume, other := f, f
	volume.Kind, volume.ProviderID, other.Kind, other.ProviderID, other.OwnerUID = "volume", "v1", "volume", "v2", "w"
	l := &list{found: []Found{f, volume, other}}
	g.Expect(l.spared([]*candidate{{Found: volume}})).To(Equal(map[owner]bool{other.owner(): true}))
}

// clean is a driver whose Cleanup is the function.
type clean struct {
	*fakeCloud
	do func([]driver.Handle) []driver.Answer[[]string]
}

func (c clean) Cleanup(_ context.Context, _ driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	return c.do(handles)
}

// Whatever a driver answers to a cleanup, and however often it is asked, each thing is reported once.
func TestAnswersToACleanup(t *testing.T) {
	_, f, _ := orphan()
	batch := []*candidate{
		{Found: f, cluster: Cluster{Namespace: "ns", Name: "green"}},
		{Found: f, cluster: Cluster{Namespace: "ns", Name: "green"}},
	}
	batch[0].Kind, batch[0].ProviderID = "network interface", "n"
	batch[1].Kind, batch[1].ProviderID = "volume", "v"
	for name, test := range map[string]struct {
		do   func([]driver.Handle) []driver.Answer[[]string]
		want string
	}{
		"of each": {func(h []driver.Handle) []driver.Answer[[]string] { return make([]driver.Answer[[]string], len(h)) }, DeletedEvent},
		"too few": {func([]driver.Handle) []driver.Answer[[]string] { return make([]driver.Answer[[]string], 1) }, FailedEvent},
		"none":    {func([]driver.Handle) []driver.Answer[[]string] { return nil }, FailedEvent},
		"a panic": {func([]driver.Handle) []driver.Answer[[]string] { panic("oh") }, FailedEvent},
		"a refusal": {func(h []driver.Handle) []driver.Answer[[]string] {
			return driver.Failed[[]string](len(h), errors.New("no"))
		}, FailedEvent},
		"too many, so": {func(h []driver.Handle) []driver.Answer[[]string] { return make([]driver.Answer[[]string], len(h)+1) }, FailedEvent},
	} {
		t.Run(name, func(t *testing.T) {
			i := newInstallation(t)
			var asked []driver.Handle
			i.collector.Cloud = clean{i.cloud, func(h []driver.Handle) []driver.Answer[[]string] { asked = h; return test.do(h) }}
			for range 2 {
				i.collector.cleanUp(i.ctx, testScope, batch)
			}
			i.Expect(i.events).To(HaveLen(2))
			i.Expect(i.events).To(HaveEach(ContainSubstring(" " + test.want + ": ")))
			asked = nil
			ended, end := context.WithCancel(i.ctx)
			end()
			i.collector.cleanUp(ended, testScope, batch)
			i.Expect(asked).To(BeNil(), "a process that ends calls nothing any more")
		})
	}
}

// A scope is remembered for a month after something of ours was seen there.
func TestScopesAreRemembered(t *testing.T) {
	g := NewWithT(t)
	r := Record{}.saw([]driver.Scope{testScope}, testStart)
	for after, want := range map[time.Duration]int{0: 1, time.Hour: 1, keepScope - time.Second: 1, keepScope: 0} {
		g.Expect(r.saw(nil, testStart.Truncate(time.Hour).Add(after)).Scopes).To(HaveLen(want), fmt.Sprint(after))
	}
}
