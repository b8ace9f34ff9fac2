package machinedeployment

import (
	"context"
	"fmt"
	"maps"
	"sync"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/test/coretest/workers"
)

// watchedNumbers are the Machines of a namespace as a watch shows them: every state that they were ever in.
type watchedNumbers struct {
	highest, lowest int

	mutex     sync.Mutex
	versions  map[types.UID]string
	available map[types.UID]bool
	violation string
}

// watchNumbers watches the numbers of Machines until the function that it returns is called.
func (w *world) watchNumbers(highest, lowest int) (stop func()) {
	ctx, cancel := context.WithCancel(w.Ctx)
	n := &watchedNumbers{highest: highest, lowest: lowest, versions: map[types.UID]string{}, available: map[types.UID]bool{}}
	watching, err := client.NewWithWatch(suite.Env.Config, client.Options{Scheme: workers.Scheme(), Mapper: suite.Env.Mapper})
	w.G.Expect(err).NotTo(HaveOccurred())
	list := &clusterv1.MachineList{}
	w.G.Expect(watching.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	for i := range list.Items {
		n.set(&list.Items[i])
	}
	watcher, err := watching.Watch(ctx, &clusterv1.MachineList{}, client.InNamespace(w.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	w.G.Expect(err).NotTo(HaveOccurred())
	go func() {
		for event := range watcher.ResultChan() {
			n.observe(event)
		}
	}()
	return func() {
		w.Eventually(func(g Gomega) { n.hasSeen(g, w.Machines()) })
		n.mutex.Lock()
		defer n.mutex.Unlock()
		// A watch that is ended reports that as an error.
		defer cancel()
		w.G.Expect(n.violation).To(BeEmpty(), "at most %d may exist, at least %d be available", highest, lowest)
	}
}

func (n *watchedNumbers) set(machine *clusterv1.Machine) {
	n.versions[machine.UID], n.available[machine.UID] = machine.ResourceVersion, machines.Available(machine)
}

// observe checks the numbers after each event.
func (n *watchedNumbers) observe(event watch.Event) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	machine, ok := event.Object.(*clusterv1.Machine)
	switch {
	case !ok:
		n.violation = fmt.Sprintf("the watch sent %s %v", event.Type, event.Object)
		return
	case event.Type == watch.Deleted:
		delete(n.versions, machine.UID)
		delete(n.available, machine.UID)
	default:
		n.set(machine)
	}
	available := 0
	for _, is := range n.available {
		if is {
			available++
		}
	}
	if n.violation == "" && (len(n.available) > n.highest || available < n.lowest) {
		n.violation = formatNumbers(len(n.available), available)
	}
}

// hasSeen matches when the watch has arrived at the Machines that exist.
func (n *watchedNumbers) hasSeen(g Gomega, current []clusterv1.Machine) {
	versions := map[types.UID]string{}
	for i := range current {
		versions[current[i].UID] = current[i].ResourceVersion
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	g.Expect(maps.Equal(versions, n.versions)).To(BeTrue(), "the watch shows %v, there is %v", n.versions, versions)
}
