package machineset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	. "millwright.dev/test/coretest/builder"
)

// TestExpectationsOfAnyCache plays a MachineSet that creates and deletes Machines beside others who delete them, with a cache that follows
// at random and skips what it likes. Once the API server was asked, no Machine that exists is unknown, and none whose deletion this
// process has asked for, or has heard of, counts as alive; and in the end nothing is remembered but what the cache shows.
func TestExpectationsOfAnyCache(t *testing.T) {
	for seed := range uint64(600) {
		w := &cacheWorld{
			random: rand.New(rand.NewPCG(seed, 1)), now: Epoch, server: map[string]*clusterv1.Machine{},
			ended: map[string]bool{}, seen: map[string]bool{},
		}
		w.cached = w.server
		for step := range 60 {
			w.step()
			if violation := w.check(); violation != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, violation)
			}
		}
		w.rest(t, seed)
	}
}

// rest has the cache catch up, and looks at what is remembered then.
func (w *cacheWorld) rest(t *testing.T, seed uint64) {
	t.Helper()
	g := NewWithT(t)
	w.now, w.cached = w.now.Add(unseenTimeout), w.server
	var live []*clusterv1.Machine
	for _, machine := range w.server {
		live = append(live, &clusterv1.Machine{ObjectMeta: machine.ObjectMeta})
	}
	w.expectations.verify("set", live, w.inCache(), w.now)
	g.Expect(w.expectations.settle("set", w.inCache(), w.now)).To(ConsistOf(w.inCache()), "seed %d", seed)
	set := w.expectations.of("set")
	g.Expect(set.created).To(BeEmpty(), "seed %d", seed)
	for _, remembered := range []map[types.UID]bool{set.deleted, set.complete} {
		for uid := range remembered {
			g.Expect(w.server).To(HaveKey(string(uid[len("uid-"):])), "seed %d: nothing is remembered of what is gone", seed)
		}
	}
}

type cacheWorld struct {
	random       *rand.Rand
	now          time.Time
	expectations expectations
	// server and cached are the Machines by name. Those of the server are replaced and not modified.
	server, cached map[string]*clusterv1.Machine
	// ended are the Machines that the process knows to be deleted, seen those that it has found in the cache.
	ended, seen map[string]bool
	count       int
}

func (w *cacheWorld) step() {
	w.now = w.now.Add(time.Duration(w.random.IntN(5)) * time.Second)
	w.server = maps.Clone(w.server)
	steps := []func(){
		w.create, w.create, w.delete, w.othersDelete, w.goes, w.verify, w.cacheFollows, w.cacheFollows,
		func() { w.expectations.completed("set", types.UID("uid-"+w.any())) },
	}
	steps[w.random.IntN(len(steps))]()
}

// any is a Machine that exists, "" for none.
func (w *cacheWorld) any() string {
	for n := range w.count {
		if name := fmt.Sprint("m", n); w.server[name] != nil && w.random.IntN(3) == 0 {
			return name
		}
	}
	return ""
}

func (w *cacheWorld) create() {
	name := fmt.Sprint("m", w.count)
	w.count++
	w.server[name] = Machine(name)
	w.expectations.created("set", w.server[name], w.now)
}

func (w *cacheWorld) delete() {
	if name := w.any(); name != "" {
		w.ends(name)
		w.ended[name] = true
		w.expectations.deleted("set", w.server[name].UID)
	}
}

func (w *cacheWorld) othersDelete() {
	if name := w.any(); name != "" {
		w.ends(name)
	}
}

func (w *cacheWorld) ends(name string) {
	if w.server[name].DeletionTimestamp.IsZero() {
		going := w.server[name].DeepCopy()
		going.DeletionTimestamp = &metav1.Time{Time: w.now}
		w.server[name] = going
	}
}

func (w *cacheWorld) goes() {
	if name := w.any(); name != "" && !w.server[name].DeletionTimestamp.IsZero() {
		delete(w.server, name)
	}
}

// cacheFollows has the cache show each Machine as it is now, or as before.
func (w *cacheWorld) cacheFollows() {
	cached := maps.Clone(w.cached)
	for n := range w.count {
		name := fmt.Sprint("m", n)
		if w.random.IntN(2) == 0 {
			continue
		}
		if delete(cached, name); w.server[name] != nil {
			cached[name] = w.server[name]
		}
	}
	w.cached = cached
}

func (w *cacheWorld) inCache() []*clusterv1.Machine {
	var machines []*clusterv1.Machine
	for n := range w.count {
		if machine := w.cached[fmt.Sprint("m", n)]; machine != nil {
			machines = append(machines, machine)
			w.seen[machine.Name] = true
		}
	}
	return machines
}

// verify asks the API server between two looks at the cache.
func (w *cacheWorld) verify() {
	before := w.inCache()
	for name := range w.cached {
		w.ended[name] = w.ended[name] || w.server[name] == nil
	}
	var live []*clusterv1.Machine
	for _, machine := range w.server {
		live = append(live, &clusterv1.Machine{ObjectMeta: machine.ObjectMeta})
		w.ended[machine.Name] = w.ended[machine.Name] || !machine.DeletionTimestamp.IsZero()
	}
	for range w.random.IntN(3) {
		w.server = maps.Clone(w.server)
		w.goes()
		w.cacheFollows()
	}
	w.expectations.verify("set", live, before, w.now)
}

// check is what one reconcile sees, twice.
func (w *cacheWorld) check() string {
	for range 2 {
		known := map[string]*clusterv1.Machine{}
		for _, machine := range w.expectations.settle("set", w.inCache(), w.now) {
			if known[machine.Name] != nil {
				return machine.Name + " is there twice"
			}
			known[machine.Name] = machine
			shown, going := w.cached[machine.Name], machine.DeletionTimestamp
			switch {
			case going.IsZero() && w.ended[machine.Name]:
				return machine.Name + " counts as alive"
			case shown == nil && w.seen[machine.Name]:
				return machine.Name + " has gone from the cache"
			case shown != nil && !shown.DeletionTimestamp.IsZero() && !going.Equal(shown.DeletionTimestamp):
				return machine.Name + " is being deleted since another time than the cache shows"
			}
		}
		for name := range w.server {
			if known[name] == nil {
				return name + " is not known"
			}
		}
	}
	return ""
}
