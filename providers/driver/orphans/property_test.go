package orphans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

// propertySeeds are how many worlds there are, unless SIMULATION_RUNS says otherwise, and propertySteps what happens in each.
const (
	propertySeeds = 150
	propertySteps = 40
)

// TestWhateverHappensNothingThatIsClaimedIsEnded lets two leaders scan one management cluster, with a second one beside it, while objects are
// launched, deleted and removed by force, Clusters changed, paused and moved, also half-way, instances copied by users, backups restored,
// processes restarted, and requests fail.
func TestWhateverHappensNothingThatIsClaimedIsEnded(t *testing.T) {
	done, ended := map[string]int{}, 0
	seeds := propertySeeds
	if n, err := strconv.Atoi(os.Getenv("SIMULATION_RUNS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		l := newLand(seed)
		for range propertySteps {
			l.step(done)
		}
		l.settle()
		ended += len(l.cloud.deleted)
		if len(l.wrong) > 0 {
			t.Fatalf("seed %d: %s\n%s", seed, strings.Join(l.wrong, "\n"), strings.Join(l.log, "\n"))
		}
	}
	done["ended"] = ended
	for _, needed := range append(actionNames, "ended") {
		if done[needed] < seeds/4 {
			t.Errorf("%s happened %d times in %d seeds: %v", needed, done[needed], seeds, done)
		}
	}
}

// memoryAPI is an API server with what the collector reads and writes, and nothing else.
type memoryAPI struct {
	client.Client

	record   *corev1.ConfigMap
	version  int
	clusters map[string]*clusterv1.Cluster
	machines map[string]*examplev1.ExampleMachine
	// fails is asked before each request, and lose after each write.
	fails, lose func() bool
}

var errAPI = errors.New("the API server does not answer")

func (a *memoryAPI) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch {
	case a.fails():
		return errAPI
	case a.record == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	a.record.DeepCopyInto(obj.(*corev1.ConfigMap))
	return nil
}

func (a *memoryAPI) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return a.Update(ctx, obj)
}

func (a *memoryAPI) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	next := obj.(*corev1.ConfigMap).DeepCopy()
	if a.fails() {
		return errAPI
	}
	if a.record != nil && next.ResourceVersion != a.record.ResourceVersion || a.record == nil && next.ResourceVersion != "" {
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, next.Name, errors.New("it was changed"))
	}
	a.version++
	next.ResourceVersion = fmt.Sprint(a.version)
	a.record = next
	if a.lose() {
		return errAPI
	}
	return nil
}

func (a *memoryAPI) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if a.fails() {
		return errAPI
	}
	switch list := list.(type) {
	case *metav1.PartialObjectMetadataList:
		for _, c := range a.clusters {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: c.ObjectMeta})
		}
	case *clusterv1.ClusterList:
		for _, c := range a.clusters {
			list.Items = append(list.Items, *c)
		}
	case *examplev1.ExampleMachineList:
		for _, m := range a.machines {
			list.Items = append(list.Items, *m)
		}
	}
	return nil
}

// state is a copy of all that the API server has, without the version of its next write.
func (a *memoryAPI) state() *memoryAPI {
	s := &memoryAPI{clusters: map[string]*clusterv1.Cluster{}, machines: maps.Clone(a.machines), record: a.record.DeepCopy(), fails: a.fails, lose: a.lose}
	for name, c := range a.clusters {
		s.clusters[name] = c.DeepCopy()
	}
	return s
}

// process is a leader, or one that believes to be.
type process struct {
	reign     *Reign
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
	// orphans are the instances whose objects were removed by force; lost are those whose objects a restore has lost, and copies what users made.
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
	p := &process{reign: NewReign(api, api, l.clock, testKey)}
	p.collector = &Collector{
		Kind: "ExampleMachine", APIReader: api, Recorder: p, Clock: l.clock, Cloud: l.cloud, Remarker: l.cloud, Reign: p.reign,
		Options: Options{Period: DefaultPeriod, Record: testKey}, CallTimeout: time.Minute, Claim: claimOf,
		NewList: func() client.ObjectList { return &examplev1.ExampleMachineList{} },
		Tracked: func() []driver.Scope { return []driver.Scope{testScope} },
	}
	_ = p.reign.Begin(l.ctx)
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
	if !l.orphans[id] {
		l.wrong = append(l.wrong, fmt.Sprintf("%s was ended, and its object was not removed by force (lost by a restore: %v, a copy: %v)", id, l.lost[id], l.copies[id]))
	}
	return nil
}

// actions are what happens; each returns false where it cannot.
var actions = map[string]func(*land) bool{
	"launch": func(l *land) bool {
		cluster := l.source.clusters[fmt.Sprint("c", l.random.IntN(2))]
		if cluster == nil || clusterOf(cluster).Paused {
			return false
		}
		l.count++
		name := fmt.Sprint("m", l.count)
		m := &examplev1.ExampleMachine{Spec: examplev1.ExampleMachineSpec{Account: testScope.Location}}
		m.Namespace, m.Name, m.UID = "ns", name, types.UID(fmt.Sprint("a-", name))
		m.Labels, m.Annotations = map[string]string{clusterv1.ClusterNameLabel: cluster.Name}, map[string]string{"uid": string(m.UID)}
		lineage, _ := l.leader().reign.Mark(cluster.UID, m.UID, testScope)
		l.cloud.add(testScope, driver.Instance{ID: "i-" + name, OwnerUID: m.UID, Owner: "ns/" + name, Lineage: lineage, Token: driver.Token("ns/"+name, m.UID, 1)})
		m.Spec.ProviderID = "fake:///here/i-" + name
		l.source.machines[name] = m
		return true
	},
	"expunge": func(l *land) bool {
		m := l.any()
		if m == nil || l.target.machines[m.Name] != nil {
			return false // What has an object at both sides, of which one rests, see the decision.
		}
		delete(l.source.machines, m.Name)
		l.orphans["i-"+m.Name] = true
		return true
	},
	"delete": func(l *land) bool {
		m := l.any()
		if m == nil || l.target.machines[m.Name] != nil {
			return false
		}
		delete(l.source.machines, m.Name)
		l.cloud.vanish("i-" + m.Name)
		for _, p := range l.processes {
			p.reign.Released(m.UID)
		}
		return true
	},
	"change": func(l *land) bool { return l.change(func(c *clusterv1.Cluster) {}) },
	"pause": func(l *land) bool {
		return l.change(func(c *clusterv1.Cluster) { paused := !clusterOf(c).Paused; c.Spec.Paused = &paused })
	},
	"move": (*land).move,
	"copy": func(l *land) bool {
		m := l.any()
		if m == nil {
			return false
		}
		like := l.cloud.get("i-" + m.Name)
		l.count++
		like.ID, like.Token = fmt.Sprint("copy-", l.count), ""
		l.copies[like.ID] = true
		l.cloud.add(testScope, like)
		return true
	},
	"backup": func(l *land) bool { l.backup = l.source.state(); return true },
	"restore": func(l *land) bool {
		if l.backup == nil {
			return false
		}
		for name := range l.source.machines {
			if l.backup.machines[name] == nil {
				l.lost["i-"+name] = true
			}
		}
		for id := range l.orphans {
			if name := strings.TrimPrefix(id, "i-"); l.backup.machines[name] != nil {
				delete(l.orphans, id)
			}
		}
		state := l.backup.state()
		l.source.clusters, l.source.machines, l.source.record = state.clusters, state.machines, state.record
		return true
	},
	"restart": func(l *land) bool {
		l.processes[l.random.IntN(2)] = l.process(l.source)
		return true
	},
	"scan": func(l *land) bool {
		l.clock.Step(time.Duration(1+l.random.IntN(1200)) * time.Second)
		l.leader().collector.Scan(l.ctx)
		return true
	},
	"scans": func(l *land) bool {
		p := l.leader()
		for range 3 {
			l.clock.Step(DefaultPeriod)
			p.collector.Scan(l.ctx)
			l.there.collector.Scan(l.ctx)
		}
		return true
	},
	"break": func(l *land) bool { l.broken = max(0, 5*l.random.IntN(8)-20); return true },
}

var actionNames = slices.Sorted(maps.Keys(actions))

func (l *land) step(done map[string]int) {
	name := actionNames[l.random.IntN(len(actionNames))]
	if often := []string{"launch", "scan", "scans", "expunge"}; l.random.IntN(2) == 0 {
		name = often[l.random.IntN(len(often))]
	}
	if actions[name](l) {
		done[name]++
		l.log = append(l.log, name)
	}
	l.clock.Step(time.Second)
}

// leader is mostly the same.
func (l *land) leader() *process { return l.processes[l.random.IntN(8)/7] }

// any is an object of the source.
func (l *land) any() *examplev1.ExampleMachine {
	names := slices.Sorted(maps.Keys(l.source.machines))
	if len(names) == 0 {
		return nil
	}
	return l.source.machines[names[l.random.IntN(len(names))]]
}

// change changes the spec of a Cluster of the source.
func (l *land) change(change func(*clusterv1.Cluster)) bool {
	c := l.source.clusters[fmt.Sprint("c", l.random.IntN(2))]
	if c == nil {
		return false
	}
	change(c)
	c.Generation++
	return true
}

// move moves a Cluster, and fails somewhere, or not at all. Then somebody may unpause the source.
func (l *land) move() bool {
	name := fmt.Sprint("c", l.random.IntN(2))
	from := l.source.clusters[name]
	if from == nil || l.target.clusters[name] != nil {
		return false
	}
	paused, unpaused := true, false
	from.Spec.Paused = &paused
	from.Generation++
	to := l.cluster(types.UID("b-"+name), name)
	to.Spec.Paused = &paused
	l.target.clusters[name] = to
	var names []string
	for n, m := range l.source.machines {
		if m.Labels[clusterv1.ClusterNameLabel] == name {
			names = append(names, n)
			arrived := m.DeepCopy()
			arrived.UID = types.UID("b-" + n)
			l.target.machines[n] = arrived
		}
	}
	slices.Sort(names)
	l.backup = nil // A backup of before a move, restored after it, is TestABackupOfBeforeAMoveTakesNothingOver.
	gone := l.random.IntN(len(names) + 2)
	for _, n := range names[:min(gone, len(names))] {
		delete(l.source.machines, n)
	}
	switch {
	case gone > len(names):
		delete(l.source.clusters, name)
		to.Spec.Paused = &unpaused
		to.Generation++
	case l.random.IntN(2) == 0:
		from.Spec.Paused = &unpaused
		from.Generation++
	}
	l.log = append(l.log, fmt.Sprintf("moving %s: %d of %d are gone, the source is paused: %v", name, gone, len(names), clusterOf(from).Paused))
	return true
}

// settle has everything work again, one process lead, and everybody unpaused: then each instance without an object is ended or reported.
func (l *land) settle() {
	l.broken = 0
	for _, c := range l.source.clusters {
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
		if i.ID == "" || slices.Contains(reported, assessments["instance "+i.ProviderID]) || !here && (lineage.Cluster != "" || len(l.source.clusters) == 0) {
			continue // Of a Cluster that has been moved away the target, or nobody, can tell.
		}
		l.wrong = append(l.wrong, fmt.Sprintf("%s of %q is neither ended nor reported: %q", id, i.Lineage, assessments["instance "+i.ProviderID]))
	}
}
