package orphans

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// lineageAt is a lineage of Cluster c.
func lineageAt(installation string, after time.Duration) string {
	return driver.Lineage{Cluster: "c", Installation: installation, At: testStart.Add(after)}.String()
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
		"of another installation":       {func(_ *World, f *Found) { f.Lineage = lineageAt("other", 30*time.Minute) }, false},
		"not covered by a scan":         {func(_ *World, f *Found) { f.Lineage = lineageAt("ours", 2*time.Hour) }, false},
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
