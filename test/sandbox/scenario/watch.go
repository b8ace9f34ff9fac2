package scenario

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
)

// Watch follows the Machines of one namespace, the Nodes and the disruption budgets, and remembers
// when each Machine reached each phase.
type Watch struct {
	onChange func()

	mu        sync.Mutex
	changed   chan struct{}
	machines  map[string]*clusterv1.Machine
	nodes     map[string]*corev1.Node
	timeline  *Timeline
	budgets   map[string]bool
	violation error
	samples   int
	extremes  Extremes
	// served are the UIDs of Machines that have been available once.
	served map[string]bool
}

// Extremes of the numbers of Machines since they were last reset.
type Extremes struct {
	// Most Machines at once, those that are being deleted included.
	Most int
	// Fewest available Machines: Available, and not being deleted.
	Fewest int
	// FewestStaying Machines: those that have been available once, whatever they are now, and are not being deleted. What
	// is missing to the replicas is being replaced or has not come up.
	FewestStaying int
}

func newWatch(ctx context.Context, s *sandbox.Sandbox, namespace string, onChange func()) (*Watch, error) {
	if onChange == nil {
		onChange = func() {}
	}
	w := &Watch{
		onChange: onChange,
		changed:  make(chan struct{}),
		machines: map[string]*clusterv1.Machine{},
		nodes:    map[string]*corev1.Node{},
		budgets:  map[string]bool{},
		timeline: newTimeline(),
		served:   map[string]bool{},
	}
	follow := []struct {
		cluster *sandbox.Cluster
		object  client.Object
		handle  func(object any, gone bool)
	}{
		{s.Control, &clusterv1.Machine{}, w.machineChanged},
		{s.Target, &corev1.Node{}, w.nodeChanged},
		{s.Target, &policyv1.PodDisruptionBudget{}, w.budgetChanged},
	}
	for _, f := range follow {
		if err := w.follow(ctx, f.cluster, namespace, f.object, f.handle); err != nil {
			return nil, errors.Wrapf(err, "watching %T", f.object)
		}
	}
	return w, nil
}

// follow calls handle for each event of a kind, one at a time.
func (w *Watch) follow(ctx context.Context, c *sandbox.Cluster, namespace string, object client.Object, handle func(any, bool)) error {
	informers, err := cache.New(c.Config(), cache.Options{
		Scheme:            sandbox.Scheme,
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err != nil {
		return err
	}
	go func() { _ = informers.Start(ctx) }()
	informer, err := informers.GetInformer(ctx, object)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.event(handle, object, false) },
		UpdateFunc: func(_, object any) { w.event(handle, object, false) },
		DeleteFunc: func(object any) {
			if final, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = final.Obj
			}
			w.event(handle, object, true)
		},
	})
	return err
}

func (w *Watch) event(handle func(any, bool), object any, gone bool) {
	w.mu.Lock()
	handle(object, gone)
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	w.onChange()
}

func (w *Watch) machineChanged(object any, gone bool) {
	machine, ok := object.(*clusterv1.Machine)
	if !ok {
		return
	}
	key := string(machine.UID)
	if gone {
		delete(w.machines, key)
		w.timeline.gone(machine, time.Now())
		w.extremes.update(w.machines, w.served)
		return
	}
	w.machines[key] = machine
	w.extremes.update(w.machines, w.served)
	w.timeline.observe(summarize(machine, w.nodes[machine.Status.NodeRef.Name]), time.Now())
}

func (w *Watch) nodeChanged(object any, gone bool) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	if gone {
		delete(w.nodes, node.Name)
		return
	}
	w.nodes[node.Name] = node
	for _, machine := range w.machines {
		if machine.Status.NodeRef.Name == node.Name {
			w.timeline.observe(summarize(machine, node), time.Now())
		}
	}
}

// budgetChanged remembers the first time that a budget which was satisfied is not any more.
func (w *Watch) budgetChanged(object any, gone bool) {
	budget, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok || gone || !budget.DeletionTimestamp.IsZero() {
		return
	}
	w.samples++
	healthy, desired := budget.Status.CurrentHealthy, budget.Status.DesiredHealthy
	satisfied := healthy >= desired && desired > 0
	if w.budgets[budget.Name] && !satisfied && w.violation == nil {
		w.violation = fmt.Errorf("the disruption budget %s/%s is violated: %d pods are healthy, %d must be",
			budget.Namespace, budget.Name, healthy, desired)
	}
	w.budgets[budget.Name] = w.budgets[budget.Name] || satisfied
}

// update looks at the Machines alone: they come in the order in which they were written, while Nodes
// come by another stream, sooner or later.
func (e *Extremes) update(machines map[string]*clusterv1.Machine, served map[string]bool) {
	available, staying := 0, 0
	for _, machine := range machines {
		c := condition(machine, clusterv1.AvailableCondition)
		if c != nil && c.Status == metav1.ConditionTrue && machine.DeletionTimestamp.IsZero() {
			available++
			served[string(machine.UID)] = true
		}
		if served[string(machine.UID)] && machine.DeletionTimestamp.IsZero() {
			staying++
		}
	}
	e.Most = max(e.Most, len(machines))
	e.Fewest = min(e.Fewest, available)
	e.FewestStaying = min(e.FewestStaying, staying)
}

// ResetExtremes forgets the extremes and begins again with the Machines that there are.
func (w *Watch) ResetExtremes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extremes = Extremes{Fewest: math.MaxInt, FewestStaying: math.MaxInt}
	w.extremes.update(w.machines, w.served)
}

// Extremes are the extremes since ResetExtremes.
func (w *Watch) Extremes() Extremes {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.extremes
}

// Changed is closed at the next event.
func (w *Watch) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Machines are all Machines of the namespace, by age and name.
func (w *Watch) Machines() []Machine {
	w.mu.Lock()
	defer w.mu.Unlock()
	machines := make([]Machine, 0, len(w.machines))
	for _, machine := range w.machines {
		m := summarize(machine, w.nodes[machine.Status.NodeRef.Name])
		m.Template = machine.Spec.InfrastructureRef.Name
		machines = append(machines, m)
	}
	slices.SortFunc(machines, func(a, b Machine) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return machines
}

// UIDs are the UIDs of all Machines.
func (w *Watch) UIDs() map[string]bool {
	uids := map[string]bool{}
	for _, m := range w.Machines() {
		uids[m.UID] = true
	}
	return uids
}

// Violation is an error when a disruption budget that was satisfied once was not later on.
func (w *Watch) Violation() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.violation
}

// BudgetSatisfied reports whether some budget was satisfied, and how many states of budgets were seen.
func (w *Watch) BudgetSatisfied() (bool, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, satisfied := range w.budgets {
		if satisfied {
			return true, w.samples
		}
	}
	return false, w.samples
}

// Timeline is when each Machine reached each phase until now.
func (w *Watch) Timeline() *Timeline {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timeline.clone()
}
