package orphans

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// orphan returns what is an orphan by a hair: whatever is changed about it makes it none.
func orphan() (*World, Found, Observation) {
	at := testStart.Add(30 * time.Minute)
	w := &World{
		Now: testStart.Add(2 * time.Hour), Grace: 5 * time.Minute, Claims: newClaims(),
		Record: Record{
			Installation: "ours", Since: testStart.Unix(), LastScan: testStart.Add(2 * time.Hour).Unix(),
			Gaps: []Gap{{From: testStart.Add(time.Hour).Unix(), Until: testStart.Add(90 * time.Minute).Unix()}},
		},
		Clusters: map[types.UID]Cluster{"c": {Namespace: "ns", Name: "green", UID: "c"}}, Known: map[types.UID]KnownCluster{"c": {UID: "c"}},
	}
	f := Found{Kind: kindInstance, Instance: driver.Instance{
		ID:         "i",
		ProviderID: "p",
		Token:      driver.Token("ns/m", "u", 1),
		OwnerUID:   "u",
		Owner:      "ns/m",
		State:      driverv1.InstanceRunning,
		LaunchTime: at,
		Lineage:    driver.Lineage{Cluster: "c", Installation: "ours", At: at}.String(),
	}}
	return w, f, Observation{First: w.Now.Add(-5 * time.Minute), Scans: 1}
}

func claimBy(c Claim) func(*World, *Found, *Observation) {
	return func(w *World, _ *Found, _ *Observation) { w.Claims.add(c) }
}

// another is claimBy of an object that has launched the instance q, as its mark in the cloud shows.
func another(c Claim) func(*World, *Found, *Observation) {
	return func(w *World, _ *Found, _ *Observation) {
		w.Claims.add(c)
		w.Claims.list([]Found{{Kind: kindInstance, Instance: driver.Instance{OwnerUID: c.UID, ProviderID: "q"}}})
	}
}

// marked returns a change of the lineage.
func marked(cluster types.UID, installation string, after time.Duration) func(*World, *Found, *Observation) {
	return func(_ *World, f *Found, _ *Observation) {
		f.Lineage = driver.Lineage{Cluster: cluster, Installation: installation, At: testStart.Add(after)}.String()
	}
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*World, *Found, *Observation)
		want   Assessment
	}{
		"as it is":                         {func(*World, *Found, *Observation) {}, Orphan},
		"stopped":                          {func(_ *World, f *Found, _ *Observation) { f.State = driverv1.InstanceStopped }, Orphan},
		"failed, and kept by the cloud":    {func(_ *World, f *Found, _ *Observation) { f.State = driverv1.InstanceFailed }, Orphan},
		"terminating":                      {func(_ *World, f *Found, _ *Observation) { f.State = driverv1.InstanceTerminating }, Ended},
		"terminated":                       {func(_ *World, f *Found, _ *Observation) { f.State = driverv1.InstanceTerminated }, Ended},
		"not certain to exist":             {func(_ *World, f *Found, _ *Observation) { f.ProviderID = "" }, Ended},
		"claimed by its provider ID":       {claimBy(Claim{UID: "x", Handle: driver.Handle{ProviderID: "p", Owner: "other/x"}}), Claimed},
		"claimed by its token":             {claimBy(Claim{UID: "x", Handle: driver.Handle{Token: driver.Token("ns/m", "u", 1), Owner: "other/x"}}), Claimed},
		"claimed by the UID in a record":   {claimBy(Claim{UID: "x", Handle: driver.Handle{OwnerUID: "u", Owner: "other/x"}}), Claimed},
		"claimed by the UID of an object":  {claimBy(Claim{UID: "u", Handle: driver.Handle{OwnerUID: "y", Owner: "other/x"}}), Claimed},
		"claimed by the name of an object": {claimBy(Claim{UID: "x", Handle: driver.Handle{Owner: "ns/m"}}), Claimed},
		"claimed by the name of an object that has another instance, and no UID of the mark": {
			another(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x", ProviderID: "q"}}), Orphan},
		"so, but the object is paused, being deleted, or not ours": {
			another(Claim{UID: "x", Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x", ProviderID: "q"}}), Claimed},
		"so, but the object has nothing yet": {
			another(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x"}}), Claimed},
		"so, but it has the UID of the mark": {
			another(Claim{UID: "u", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "u", ProviderID: "q"}}), Claimed},
		"so, but it was launched with the UID of the mark": {
			another(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "u", ProviderID: "q"}}), Claimed},
		"so, but it is no instance, and may belong to that of the object": {func(w *World, f *Found, _ *Observation) {
			f.Kind = "disk"
			w.Claims.list([]Found{{Kind: kindInstance, Instance: driver.Instance{OwnerUID: "x", ProviderID: "q"}}})
			w.Claims.add(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x", ProviderID: "q"}})
		}, Claimed},
		"so, but the cloud lists no such instance of the object, which may be forged": {
			claimBy(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x", ProviderID: "q"}}), Claimed},
		"so, but its instance is not the one that it names": {
			another(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x", ProviderID: "r"}}), Claimed},
		"so, but that has ended": {func(w *World, f *Found, _ *Observation) {
			w.Claims.add(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x", ProviderID: "q"}})
			w.Claims.list([]Found{{Kind: kindInstance, Instance: driver.Instance{OwnerUID: "x", ProviderID: "q",
				State: driverv1.InstanceTerminated}}})
		}, Claimed},
		"so, and it has a disk with that mark": {func(w *World, f *Found, s *Observation) {
			another(Claim{UID: "x", Settled: true, Handle: driver.Handle{Owner: "ns/m", OwnerUID: "x", ProviderID: "q"}})(w, f, s)
			w.Claims.list([]Found{{Kind: "disk", Instance: driver.Instance{OwnerUID: "x", ProviderID: "d"}}})
		}, Orphan},
		"claimed by the digest of a name": {func(w *World, f *Found, _ *Observation) {
			f.Owner = driver.OwnerDigest("ns/m")
			w.Claims.add(Claim{UID: "x", Handle: driver.Handle{Owner: "ns/m"}})
		}, Claimed},
		"claimed by nothing of an object that has nothing": {func(w *World, f *Found, _ *Observation) {
			f.Token = ""
			w.Claims.add(Claim{UID: "x", Handle: driver.Handle{OwnerUID: "x", Owner: "ns/x"}})
		}, NotLaunched},
		"an object without a name claims no half mark": {func(w *World, f *Found, _ *Observation) {
			f.Owner = ""
			w.Claims.add(Claim{UID: "x"})
		}, Foreign},
		"an object without a UID claims no half mark": {func(w *World, f *Found, _ *Observation) {
			f.OwnerUID = ""
			w.Claims.add(Claim{UID: "x", Handle: driver.Handle{Owner: "ns/x"}})
		}, Foreign},
		"another object":                {claimBy(Claim{UID: "x", Handle: driver.Handle{Owner: "ns/x", OwnerUID: "x"}}), Orphan},
		"marked by a digest":            {func(_ *World, f *Found, _ *Observation) { f.Owner = driver.OwnerDigest("ns/m") }, Orphan},
		"half a mark":                   {func(_ *World, f *Found, _ *Observation) { f.Owner = "" }, Foreign},
		"the other half of a mark":      {func(_ *World, f *Found, _ *Observation) { f.OwnerUID = "" }, Foreign},
		"of another management cluster": {marked("other", "other", 30*time.Minute), Foreign},
		"moved":                         {marked("other", "ours", 30*time.Minute), ClusterGone},
		"of a Cluster that the record does not have":    {func(w *World, _ *Found, _ *Observation) { clear(w.Known) }, Unproven},
		"removed while its Cluster was paused, perhaps": {func(w *World, _ *Found, _ *Observation) { w.Known["c"] = KnownCluster{UnprovenUntil: w.Now.Unix()} }, Unproven},
		"marked since": {func(w *World, _ *Found, _ *Observation) {
			w.Known["c"] = KnownCluster{UnprovenUntil: testStart.Add(30 * time.Minute).Unix()}
		}, Orphan},
		"of another installation":                     {marked("c", "other", 30*time.Minute), OtherInstallation},
		"between a scan and a start":                  {marked("c", "ours", time.Hour), Unproven},
		"right before that scan":                      {marked("c", "ours", time.Hour-time.Second), Orphan},
		"right before that start":                     {marked("c", "ours", 90*time.Minute-time.Second), Unproven},
		"at that start":                               {marked("c", "ours", 90*time.Minute), Orphan},
		"before the record was created":               {marked("c", "ours", -time.Second), Unproven},
		"since the latest scan":                       {marked("c", "ours", 2*time.Hour), Young},
		"at a time that is yet to come":               {marked("c", "ours", 24*time.Hour), Unproven},
		"no lineage":                                  {func(_ *World, f *Found, _ *Observation) { f.Lineage = "" }, NoLineage},
		"what is no lineage":                          {func(_ *World, f *Found, _ *Observation) { f.Lineage = "c_ours_" }, NoLineage},
		"no lineage, in a namespace without Clusters": {func(_ *World, f *Found, _ *Observation) { f.Lineage, f.Owner = "", "else/m" }, Foreign},
		"no lineage, by a digest":                     {func(_ *World, f *Found, _ *Observation) { f.Lineage, f.Owner = "", driver.OwnerDigest("ns/m") }, Foreign},
		"no lineage, being moved": {func(w *World, f *Found, _ *Observation) {
			f.Lineage, w.Clusters["c"] = "", Cluster{Namespace: "ns", UID: "c", Paused: true}
		}, Paused},
		"paused": {func(w *World, _ *Found, _ *Observation) {
			w.Clusters["c"] = Cluster{Namespace: "ns", UID: "c", Paused: true}
		}, Paused},
		"frozen": {func(w *World, _ *Found, _ *Observation) {
			w.Clusters["c"] = Cluster{Namespace: "ns", UID: "c", Frozen: true}
		}, Frozen},
		"frozen in the scan before": {func(_ *World, _ *Found, s *Observation) { s.Frozen = true }, SeenOnce},
		"frozen, and not deleted in any case": {func(w *World, f *Found, s *Observation) {
			marked("c", "other", 30*time.Minute)(w, f, s)
			w.Clusters["c"] = Cluster{Namespace: "ns", UID: "c", Frozen: true}
		}, OtherInstallation},
		"frozen, and not seen before": {func(w *World, _ *Found, s *Observation) {
			w.Clusters["c"], *s = Cluster{Namespace: "ns", UID: "c", Frozen: true}, Observation{}
		}, SeenOnce},
		"of another namespace": {func(_ *World, f *Found, _ *Observation) { f.Owner = "else/m" }, OtherNamespace},
		"not allowed, and not seen before": {func(w *World, _ *Found, s *Observation) {
			w.Denies, *s = func(driver.Scope, string) bool { return true }, Observation{}
		}, NotAllowed},
		"since the latest scan, and not seen before": {func(w *World, f *Found, s *Observation) {
			marked("c", "ours", 2*time.Hour)(w, f, s)
			*s = Observation{}
		}, Young},
		"before the first scan": {func(w *World, f *Found, s *Observation) {
			marked("c", "ours", time.Hour)(w, f, s)
			w.Record.LastScan, w.Record.Gaps = 0, nil
		}, Young},
		"launched exactly the grace ago": {func(w *World, f *Found, _ *Observation) { f.LaunchTime = w.Now.Add(-w.Grace) }, Orphan},
		"the Cluster is not here":        {func(w *World, _ *Found, _ *Observation) { clear(w.Clusters) }, ClusterGone},
		"nothing is here":                {func(w *World, _ *Found, _ *Observation) { clear(w.Clusters); w.Record = Record{} }, Foreign},
		"without a record":               {func(w *World, _ *Found, _ *Observation) { w.Record = Record{} }, OtherInstallation},
		"not seen before":                {func(_ *World, _ *Found, s *Observation) { *s = Observation{} }, SeenOnce},
		"seen a moment ago":              {func(_ *World, _ *Found, s *Observation) { s.First = s.First.Add(time.Second) }, Young},
		"launched a moment ago":          {func(w *World, f *Found, _ *Observation) { f.LaunchTime = w.Now.Add(time.Second - w.Grace) }, Young},
		"launched in the future":         {func(w *World, f *Found, _ *Observation) { f.LaunchTime = w.Now.Add(time.Hour) }, Young},
		"launched at an unknown time":    {func(_ *World, f *Found, _ *Observation) { f.LaunchTime = time.Time{} }, Orphan},
	} {
		t.Run(name, func(t *testing.T) {
			w, f, seen := orphan()
			test.change(w, &f, &seen)
			NewWithT(t).Expect(Decide(w, f, seen)).To(Equal(test.want))
		})
	}
}

// Whatever the world is like, something is an orphan only if everything holds that has to.
func TestAnOrphanIsCertain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(some ...string) string { return some[random.IntN(len(some))] }
	minutes := func(n int) time.Duration { return time.Duration(random.IntN(n)) * time.Minute }
	orphans := 0
	for range 40000 {
		w, f, seen := orphan()
		clear(w.Clusters)
		for range random.IntN(3) {
			uid := types.UID(pick("c", "d"))
			w.Clusters[uid] = Cluster{UID: uid, Namespace: pick("ns", "ns", "else"), Paused: random.IntN(4) == 0, Frozen: random.IntN(4) == 0}
		}
		w.Record.Gaps = w.Record.Gaps[random.IntN(2):]
		at := testStart.Add(minutes(150))
		until := testStart.Add(minutes(150)).Unix()
		w.Known["d"], w.Known["c"] = KnownCluster{}, KnownCluster{UnprovenUntil: until}
		lineage := driver.Lineage{Cluster: types.UID(pick("c", "c", "d")), Installation: pick("ours", "ours", "other"), At: at}
		f.Lineage = pick("", "x", lineage.String())
		f.Token = pick(f.Token, f.Token, driver.Token("ns/m", "u", 2), "", "mw-1")
		f.Owner, f.OwnerUID = pick("ns/m", "ns/m", "else/m", "odigest"), types.UID(pick("u", "u", "u", ""))
		f.LaunchTime, seen.First, seen.Scans = w.Now.Add(-minutes(30)), w.Now.Add(-minutes(30)), random.IntN(3)
		if random.IntN(4) == 0 {
			w.Claims.add(Claim{UID: types.UID(pick("u", "x")), Handle: driver.Handle{
				Owner: pick("ns/m", "ns/x"), ProviderID: pick("p", "q", ""), Token: pick(f.Token, ""), OwnerUID: types.UID(pick("u", "x")),
			}})
		}
		if Decide(w, f, seen) != Orphan {
			continue
		}
		orphans++
		g := NewWithT(t)
		l, ok := driver.ParseLineage(f.Lineage)
		g.Expect(ok).To(BeTrue())
		cluster, here := w.Clusters[l.Cluster]
		g.Expect(here).To(BeTrue())
		g.Expect(cluster.Paused || cluster.Frozen).To(BeFalse())
		g.Expect(l.Cluster == "c" && at.Unix() < until).To(BeFalse())
		g.Expect(f.Owner).To(Or(HavePrefix(cluster.Namespace+"/"), Equal("odigest")))
		g.Expect(l.Installation).To(Equal("ours"))
		g.Expect(at.Unix()).To(And(BeNumerically(">=", w.Record.Since), BeNumerically("<", w.Record.LastScan)))
		for _, gap := range w.Record.Gaps {
			g.Expect(at.Unix()).To(Or(BeNumerically("<", gap.From), BeNumerically(">=", gap.Until)))
		}
		g.Expect(seen.Scans).To(BeNumerically(">=", 1))
		g.Expect(w.Now.Sub(seen.First)).To(BeNumerically(">=", w.Grace))
		g.Expect(w.Now.Sub(f.LaunchTime)).To(BeNumerically(">=", w.Grace))
		g.Expect(f.OwnerUID).NotTo(BeEmpty())
		g.Expect(f.Token).To(Or(Equal(driver.Token("ns/m", "u", 1)), Equal(driver.Token("ns/m", "u", 2))))
		g.Expect(w.Claims.byOwner).NotTo(HaveKey(f.Owner))
		g.Expect(w.Claims.providerIDs[f.ProviderID] || w.Claims.tokens[f.Token] || w.Claims.uids[f.OwnerUID]).To(BeFalse())
	}
	NewWithT(t).Expect(orphans).To(BeNumerically(">", 20), "the test must see some")
}

// Each assessment that is reported has advice, and each is measured.
func TestAssessmentsAreReported(t *testing.T) {
	for _, v := range reported {
		NewWithT(t).Expect(advice).To(HaveKey(v))
		NewWithT(t).Expect(allAssessments).To(ContainElement(v))
	}
	NewWithT(t).Expect(advice).To(HaveLen(len(reported)))
}

// A copy has the marks of the original, and neither its token nor its name.
func TestLaunched(t *testing.T) {
	const ns = "ns/"
	digest, long := driver.OwnerDigest, strings.Repeat("w", 50)
	of := func(owner, token, name string) Found {
		return Found{Kind: kindInstance, Instance: driver.Instance{OwnerUID: "u", Owner: owner, Token: token, Name: name}}
	}
	token := driver.Token("ns/m", "u", 3)
	for name, test := range map[string]struct {
		limit int
		found Found
		want  bool
	}{
		"as it was launched":                     {0, of("ns/m", token, ""), true},
		"without a token":                        {0, of("ns/m", "", ""), false},
		"with a token of another maker":          {0, of("ns/m", "terraform-20260101", ""), false},
		"with the token of another object":       {0, of("ns/m", driver.Token("ns/n", "u", 3), ""), false},
		"with the token of another UID":          {0, of("ns/m", driver.Token("ns/m", "v", 3), ""), false},
		"with a token of no attempt":             {0, of("ns/m", driver.Token("ns/m", "u", 0), ""), false},
		"with more than a token":                 {0, of("ns/m", token+"1234567890", ""), false},
		"marked by a digest":                     {0, of(digest("ns/m"), token, ""), true},
		"marked by a digest, without a token":    {0, of(digest("ns/m"), "", ""), false},
		"of names":                               {40, of("ns/m", token, "m"), true},
		"of names, under another":                {40, of("ns/m", token, "m-copy"), false},
		"of names, shortened":                    {40, of(ns+long, driver.Token(ns+long, "u", 3), driver.Name(long, 40)), true},
		"of names, shortened, under another":     {40, of(ns+long, driver.Token(ns+long, "u", 3), driver.Name(long+"x", 40)), false},
		"of names and digests":                   {40, of(digest("ns/m"), token, "m"), true},
		"of names and digests, under another":    {40, of(digest("ns/m"), token, "m-copy"), false},
		"of names and digests, of another token": {40, of(digest("ns/m"), driver.Token("ns/m", "v", 3), "m"), false},
		"of names and digests, shortened":        {40, of(digest(ns+long), driver.Token(ns+long, "u", 3), driver.Name(long, 40)), true},
		"what an instance has left behind":       {0, Found{Kind: "volume", Instance: driver.Instance{OwnerUID: "u", Owner: "ns/m"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &World{NameLimit: test.limit}
			NewWithT(t).Expect(w.launched(test.found, Cluster{Namespace: "ns", UID: "c"})).To(Equal(test.want))
		})
	}
	cut := driver.OwnerName(types.NamespacedName{Namespace: "ns", Name: strings.Repeat("n", 300)})
	NewWithT(t).Expect((&World{}).launched(of(cut, token, ""), Cluster{})).To(BeTrue(), "of a name that was cut, the token proves nothing")
}
