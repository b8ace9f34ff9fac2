package orphans

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// process is a leader, or one that believes to be.
type process struct {
	store     *Store
	collector *Collector
}

// Eventf implements events.EventRecorder.
func (*process) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// land is a source, a target and their cloud.
type land struct {
	ctx    context.Context
	random *rand.Rand
	clock  *clocktesting.FakeClock
	cloud  *fakeCloud
	// source and target are API servers; two processes work with the source.
	source, target *memoryAPI
	processes      []*process
	there          *process
	backup         *memoryAPI
	count          int
	// broken is how likely a request fails, in percent.
	broken int
	// orphans are the instances whose objects were removed by force; lost are those whose objects a restore has lost, and copies what users
	// made.
	orphans, lost, copies map[string]bool
	log, wrong            []string
}

func newLand(seed uint64) *land {
	clk := clocktesting.NewFakeClock(testStart)
	l := &land{
		ctx: ctrl.LoggerInto(context.Background(), logr.Discard()), random: rand.New(rand.NewPCG(seed, 1)), clock: clk, cloud: newFakeCloud(clk),
		orphans: map[string]bool{}, lost: map[string]bool{}, copies: map[string]bool{},
	}
	l.source, l.target = l.api(), l.api()
	for _, name := range []string{"c0", "c1"} {
		l.source.clusters[name] = l.cluster(types.UID("a-"+name), name)
	}
	l.processes = []*process{l.process(l.source), l.process(l.source)}
	l.there = l.process(l.target)
	l.cloud.deleting = l.ends
	l.cloud.listing = func(context.Context, driver.Scope) error {
		if l.random.IntN(100) < l.broken {
			return errors.New("the cloud does not answer")
		}
		return nil
	}
	return l
}

func (l *land) api() *memoryAPI {
	fails := func() bool { return l.random.IntN(100) < l.broken }
	return &memoryAPI{clusters: map[string]*clusterv1.Cluster{}, machines: map[string]*examplev1.ExampleMachine{}, fails: fails, lose: fails}
}

func (l *land) cluster(uid types.UID, name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Generation: 1}}
}

func (l *land) process(api *memoryAPI) *process {
	p := &process{store: NewStore(api, api, l.clock, testKey)}
	p.collector = &Collector{
		Kind: "ExampleMachine", APIReader: api, Recorder: p, Clock: l.clock, Cloud: l.cloud, Remarker: l.cloud, Store: p.store,
		Options: Options{Period: DefaultPeriod, Record: testKey}, CallTimeout: time.Minute, Claim: claimOf,
		NewList: func() client.ObjectList { return &examplev1.ExampleMachineList{} },
		Tracked: func() []driver.Scope { return []driver.Scope{testScope} },
	}
	_ = p.store.Begin(l.ctx)
	return p
}

// ends is called right before an instance is ended.
func (l *land) ends(h driver.Handle) error {
	id := strings.TrimPrefix(h.ProviderID, "fake:///here/")
	for name, api := range map[string]*memoryAPI{"source": l.source, "target": l.target} {
		for _, m := range api.machines {
			if m.Spec.ProviderID == h.ProviderID {
				l.wrong = append(l.wrong, fmt.Sprintf("%s was ended, and has an object at the %s", id, name))
			}
		}
	}
	if lineage, _ := driver.ParseLineage(l.cloud.get(id).Lineage); l.frozen(lineage.Cluster) {
		l.wrong = append(l.wrong, fmt.Sprintf("%s was ended, and its Cluster was frozen", id))
	}
	if !l.orphans[id] {
		l.wrong = append(l.wrong, fmt.Sprintf("%s was ended, and its object was not removed by force (lost by a restore: %v, a copy: %v)", id, l.lost[id], l.copies[id]))
	}
	return nil
}

// frozen returns whether a Cluster of the source is.
func (l *land) frozen(uid types.UID) bool {
	for _, c := range l.source.clusters {
		if c.UID == uid {
			return clusterOf(c).Frozen
		}
	}
	return false
}

// settle restores everything, with one leading process and all unpaused: then each instance without an object is ended or reported.
func (l *land) settle() {
	l.broken = 0
	for _, c := range l.source.clusters {
		allow(c, metav1.ConditionTrue, "RemediationAllowed")
		if unpaused := false; clusterOf(c).Paused {
			c.Spec.Paused = &unpaused
			c.Generation++
		}
	}
	p := l.process(l.source)
	for range 5 {
		l.clock.Step(DefaultPeriod)
		p.collector.Scan(l.ctx)
		l.there.collector.Scan(l.ctx)
	}
	assessments := p.collector.scopes[testScope].reported
	for id := range l.orphans {
		i := l.cloud.get(id)
		lineage, _ := driver.ParseLineage(i.Lineage)
		_, here := l.source.clusters[strings.TrimPrefix(string(lineage.Cluster), "a-")]
		if i.ID == "" || slices.Contains(reported, assessments["instance "+i.ProviderID]) ||
			!here && (lineage.Cluster != "" || len(l.source.clusters) == 0) {
			continue // For a Cluster that was moved away only the target knows, if anything does.
		}
		l.wrong = append(l.wrong, fmt.Sprintf("%s of %q is neither ended nor reported: %q", id, i.Lineage, assessments["instance "+i.ProviderID]))
	}
}
