package machineset

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// closedReader refuses to list the metadata of MachineSets while it is closed.
type closedReader struct {
	client.Reader
	closed *atomic.Bool
}

func (r closedReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if r.closed.Load() && list.GetObjectKind().GroupVersionKind().Kind == "MachineSetList" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "machinesets"}, "", errors.New("not before Monday"))
	}
	return r.Reader.List(ctx, list, options...)
}

// TestWhatIsInFlightCannotBeRead: as long as that has not been read since the start nothing is replaced, which is reported in the API
// server's words.
func TestWhatIsInFlightCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var closed atomic.Bool
	closed.Store(true)
	w.change = func(r *Reconciler) { r.APIReader = closedReader{r.APIReader, &closed} }
	w.set(2)
	w.start(t)
	w.Eventually(w.settled(2))
	names := livingNames(w)
	w.findUnhealthy(names[0])
	w.becomes(names[0], clusterv1.MachineSetMachineRemediationDeferredReason)
	w.Eventually(w.reports(remediationAllowedConditionType, remediation.UnreadReason, "not before Monday"))
	w.G.Expect(w.deletingNow()).To(BeZero())
	closed.Store(false)
	w.becomes(names[0], clusterv1.MachineSetMachineRemediationMachineDeletingReason)
}

// twoViews is a cache and an API server, which show different Machines and sets.
type twoViews struct {
	client.Client
	machines, cached []*clusterv1.Machine
	sets             []*clusterv1.MachineSet
	failure          error
}

func (c *twoViews) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *clusterv1.MachineList:
		for _, machine := range c.cached {
			list.Items = append(list.Items, *machine)
		}
	case *metav1.PartialObjectMetadataList:
		if list.Kind == "MachineSetList" {
			for _, set := range c.sets {
				list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: set.ObjectMeta})
			}
			return c.failure
		}
		for _, machine := range c.machines {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: machine.ObjectMeta})
		}
	}
	return nil
}

func (c *twoViews) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, machine := range c.cached {
		if machine.Name == key.Name {
			machine.DeepCopyInto(into.(*clusterv1.Machine))
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, key.Name)
}

func recordingSet(records ...string) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set", Annotations: map[string]string{}}}
	set.Spec.ClusterName = "c"
	var all []remediation.Record
	for _, name := range records {
		all = append(all, remediation.Record{Machine: name})
	}
	set.Annotations[remediation.ReplacingAnnotation] = remediation.FormatRecords(all)
	return set
}

// TestWhatTheServerShowsInFlight beside a cache that is behind in all ways.
func TestWhatTheServerShowsInFlight(t *testing.T) {
	slot := func(name string, coming bool) remediation.Live {
		return remediation.Live{Slot: remediation.Slot{Group: "set", Machine: name}, Coming: coming}
	}
	for name, test := range map[string]struct {
		set          *clusterv1.MachineSet
		live, cached []*clusterv1.Machine
		flight       remediation.Flight
		want         []remediation.Live
	}{
		"nothing":                          {set: recordingSet(), live: []*clusterv1.Machine{Machine("a")}},
		"a record":                         {set: recordingSet("a"), live: []*clusterv1.Machine{Machine("a")}, want: []remediation.Live{slot("a", false)}},
		"of one that goes":                 {set: recordingSet("a"), live: []*clusterv1.Machine{Machine("a", Deleting)}, want: []remediation.Live{slot("a", false)}},
		"of one that is gone":              {set: recordingSet("a"), want: []remediation.Live{slot("a", false)}},
		"of one that is replaced":          {set: recordingSet("a"), live: []*clusterv1.Machine{Machine("n", replacing("a", 0))}, want: []remediation.Live{slot("n", true)}},
		"the cache shows the replacement":  {set: recordingSet("a"), live: []*clusterv1.Machine{Machine("n", replacing("a", 0))}, cached: []*clusterv1.Machine{Machine("n")}},
		"the replacement's set is missing": {set: nil, live: []*clusterv1.Machine{Machine("n", replacing("a", 0))}},
		"it seems to have recovered": {
			set: recordingSet("a"), live: []*clusterv1.Machine{Machine("a")}, want: []remediation.Live{slot("a", false)},
			flight: remediation.Flight{Recovered: map[string]bool{"a": true}, Existing: map[string]bool{"a": true}},
		},
		"its record is settled": {
			set: recordingSet("a"), live: []*clusterv1.Machine{Machine("a")},
			flight: remediation.Flight{Settled: map[string]bool{"a": true}, Existing: map[string]bool{"a": true}},
		},
		"it seems to be, and the Machine goes": {
			set: recordingSet("a"), live: []*clusterv1.Machine{Machine("a", Deleting)}, want: []remediation.Live{slot("a", false)},
			flight: remediation.Flight{Settled: map[string]bool{"a": true}, Existing: map[string]bool{"a": true}},
		},
		"it seems to be, and the Machine is gone": {
			set: recordingSet("a"), want: []remediation.Live{slot("a", false)},
			flight: remediation.Flight{Settled: map[string]bool{"a": true}, Existing: map[string]bool{"a": true}},
		},
		"none is wanted any more": {set: recordingSet("a"), flight: remediation.Flight{Settled: map[string]bool{"a": true}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api := &twoViews{cached: test.cached}
			owner := recordingSet()
			if test.set != nil {
				api.sets = []*clusterv1.MachineSet{test.set}
			}
			for _, machine := range test.live {
				api.machines = append(api.machines, ownedBy(owner, machine))
			}
			r := &Reconciler{Client: api, APIReader: api}
			view := remediation.View{Flights: map[types.UID]remediation.Flight{"set": test.flight}}
			got, err := r.liveRemediations(t.Context(), begin(owner), view)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}

// TestADecisionThatTheCacheNeverShows is asked about, and its place is free once the API server says that nothing came of it; a failure
// says the same words each time, whatever the connection says.
func TestADecisionThatTheCacheNeverShows(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakeClock(Epoch)
	api := &twoViews{failure: errors.New("read tcp 127.0.0.1:4711: reset")}
	r := &Reconciler{Client: api, APIReader: api, Clock: now}
	s := begin(recordingSet())
	view := remediation.View{Flights: map[types.UID]remediation.Flight{}}
	ask := func(name string) (remediation.Decision, error) {
		in := remediation.Input{
			Now: now.Now(), Deployment: remediation.Limit{Max: 1}, Cluster: remediation.Limit{Max: 9}, Stop: remediation.Limit{Max: 9},
			Candidates: []remediation.Candidate{{Name: name}},
		}
		err := r.verifyRemediations(t.Context(), s, view, &in)
		d := r.slots.Decide(s.clusterKey(), "set", view, in)
		r.slots.Attempted(s.clusterKey(), "set", d.Results, now.Now())
		return d, err
	}
	d, err := ask("a")
	g.Expect(err).To(MatchError(ContainSubstring("reset")))
	g.Expect(d.Results[0].Blocker.Message).To(HaveSuffix("in flight in the Cluster: the API server does not answer; it is asked again"))
	api.failure = nil
	d, err = ask("a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Results[0].Allowed()).To(BeTrue())
	now.Step(time.Hour)
	api.failure = errors.New("reset")
	d, err = ask("b")
	g.Expect(err).To(HaveOccurred())
	g.Expect(d.Results[0].Blocker.Message).To(HaveSuffix("so they still count: the API server does not answer; it is asked again"))
	api.failure = nil
	d, err = ask("b")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Results[0].Allowed()).To(BeTrue())
}

// TestARecordStaysUntilTheCacheShowsTheReplacement: other sets go by the cache, and would find the place free.
func TestARecordStaysUntilTheCacheShowsTheReplacement(t *testing.T) {
	g := NewWithT(t)
	set := recordingSet("a")
	replicas := int32(1)
	set.Spec.Replicas = &replicas
	replacement := ownedBy(set, Machine("n", replacing("a", 0), Unavailable))
	api := &patchedSet{twoViews: twoViews{}}
	r := &Reconciler{Client: api, APIReader: api, Clock: clocktesting.NewFakeClock(Epoch)}
	s := r.newScope(set)
	s.machines = []*clusterv1.Machine{replacement}
	g.Expect(r.settleReplacements(t.Context(), s).Err()).To(Succeed())
	g.Expect(api.patched).To(BeFalse())
	api.cached = s.machines
	r.settleReplacements(t.Context(), s)
	g.Expect(api.patched).To(BeTrue())
}

// patchedSet notes that something was patched, which fails.
type patchedSet struct {
	twoViews
	patched bool
}

func (c *patchedSet) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	c.patched = true
	return errors.New("noted")
}
