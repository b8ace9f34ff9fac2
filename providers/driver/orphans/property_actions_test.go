package orphans

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
)

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
		lineage, _ := l.leader().store.Mark(cluster.UID, testScope)
		l.cloud.add(
			testScope,
			driver.Instance{ID: "i-" + name, OwnerUID: m.UID, Owner: "ns/" + name, Lineage: lineage, Token: driver.Token("ns/"+name, m.UID, 1)},
		)
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
		return true
	},
	"change": func(l *land) bool { return l.change(func(c *clusterv1.Cluster) {}) },
	"pause": func(l *land) bool {
		return l.change(func(c *clusterv1.Cluster) { paused := !clusterOf(c).Paused; c.Spec.Paused = &paused })
	},
	"freeze": func(l *land) bool {
		c := l.source.clusters[fmt.Sprint("c", l.random.IntN(2))]
		if c == nil {
			return false
		}
		status := metav1.ConditionFalse
		if clusterOf(c).Frozen {
			status = metav1.ConditionTrue
		}
		allow(c, status, FreezeReasons()[l.random.IntN(len(FreezeReasons()))])
		return true
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
		for n := range l.processes { // No process works while a backup is restored.
			l.processes[n] = l.process(l.source)
		}
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

// move moves a Cluster, and fails somewhere, or not at all. Then a user may unpause the source.
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
	l.backup = nil // A backup of before a move is not restored after it: see the guide.
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
	l.log = append(
		l.log,
		fmt.Sprintf("moving %s: %d of %d are gone, the source is paused: %v", name, gone, len(names), clusterOf(from).Paused),
	)
	return true
}
