package chaos

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// window is for how long after a change of replicas what was wanted before still counts: the core may not know yet.
const window = 20 * time.Second

// moment is one change of one object. Versions order the changes of all kinds: they share one etcd.
type moment struct {
	version  uint64
	at       time.Time
	kind     string
	uid      types.UID
	name     string
	owner    types.UID
	gone     bool
	deleting bool
	// limit is how many Machines a set or a deployment may have by its spec.
	limit int
}

// history is every change of Machines, MachineSets and MachineDeployments, seen past all faults.
type history struct {
	mu      sync.Mutex
	moments []moment
}

func newHistory() *history { return &history{} }

// record watches from now on, beginning with what is there.
func (h *history) record(ctx context.Context, c client.WithWatch, namespace string) error {
	for _, list := range []client.ObjectList{&clusterv1.MachineList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineDeploymentList{}} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return errors.Wrapf(err, "listing %T", list)
		}
		if err := eachItem(list, func(object client.Object) { h.add(object, false) }); err != nil {
			return err
		}
		watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				empty := list.DeepCopyObject().(client.ObjectList)
				return c.Watch(ctx, empty, client.InNamespace(namespace), &client.ListOptions{Raw: &o})
			},
		})
		if err != nil {
			return errors.Wrapf(err, "watching %T", list)
		}
		go func() {
			for event := range watcher.ResultChan() {
				if object, ok := event.Object.(client.Object); ok && event.Type != watch.Bookmark {
					h.add(object, event.Type == watch.Deleted)
				}
			}
		}()
	}
	return nil
}

func eachItem(list client.ObjectList, do func(client.Object)) error {
	return errors.Wrap(eachListItem(list, func(object runtime.Object) error {
		do(object.(client.Object))
		return nil
	}), "reading a list")
}

func (h *history) add(object client.Object, gone bool) {
	m := moment{at: time.Now(), uid: object.GetUID(), name: object.GetName(), gone: gone, deleting: object.GetDeletionTimestamp() != nil}
	m.version, _ = strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if owner := metav1.GetControllerOf(object); owner != nil {
		m.owner = owner.UID
	}
	switch o := object.(type) {
	case *clusterv1.Machine:
		m.kind = "Machine"
	case *clusterv1.MachineSet:
		m.kind, m.limit = "MachineSet", int(ptr.Deref(o.Spec.Replicas, 1))
	case *clusterv1.MachineDeployment:
		m.kind, m.limit = "MachineDeployment", int(ptr.Deref(o.Spec.Replicas, 1))+surge(o)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moments = append(h.moments, m)
}

func surge(d *clusterv1.MachineDeployment) int {
	value := d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge
	if value == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(ptr.Deref(d.Spec.Replicas, 1)), true)
	if err != nil {
		return 0
	}
	return n
}

// owners are what a Machine counts for: its set, and the deployment of that.
type books struct {
	// machines are the Machines that exist, deleting ones included, with their set.
	machines map[types.UID]types.UID
	// deployments are the deployments of sets.
	deployments map[types.UID]types.UID
	names       map[types.UID]string
	limits      map[types.UID][]limit
}

type limit struct {
	value int
	// until is when it was replaced by the next one.
	until time.Time
}

// excesses replays the history and tells each time when a Machine came that was one too many.
func (h *history) excesses() []string {
	h.mu.Lock()
	moments := slices.Clone(h.moments)
	h.mu.Unlock()
	slices.SortStableFunc(moments, func(a, b moment) int { return int(int64(a.version) - int64(b.version)) })
	b := &books{machines: map[types.UID]types.UID{}, deployments: map[types.UID]types.UID{}, names: map[types.UID]string{}, limits: map[types.UID][]limit{}}
	var found []string
	for _, m := range moments {
		if m.kind != "Machine" {
			b.enter(m)
			continue
		}
		if m.gone {
			delete(b.machines, m.uid)
			continue
		}
		before, known := b.machines[m.uid]
		b.machines[m.uid] = m.owner
		if known && before == m.owner || m.owner == "" {
			continue
		}
		found = append(found, b.check(m, m.owner)...)
		if deployment := b.deployments[m.owner]; deployment != "" {
			found = append(found, b.check(m, deployment)...)
		}
	}
	return found
}

// enter notes what a set or a deployment wants from now on.
func (b *books) enter(m moment) {
	b.names[m.uid] = m.kind + " " + m.name
	if m.kind == "MachineSet" && m.owner != "" {
		b.deployments[m.uid] = m.owner
	}
	limits := b.limits[m.uid]
	if last := len(limits) - 1; last >= 0 {
		if limits[last].value == m.limit {
			return
		}
		limits[last].until = m.at
	}
	b.limits[m.uid] = append(limits, limit{value: m.limit})
}

// check counts the Machines of a set or a deployment when one has come.
func (b *books) check(m moment, owner types.UID) []string {
	allowed, known := 0, false
	for _, l := range b.limits[owner] {
		if l.until.IsZero() || m.at.Sub(l.until) < window {
			allowed, known = max(allowed, l.value), true
		}
	}
	count := 0
	for _, set := range b.machines {
		if set == owner || b.deployments[set] == owner {
			count++
		}
	}
	if !known || count <= allowed {
		return nil
	}
	return []string{fmt.Sprintf("%s: Machine %s came as number %d of at most %d", b.names[owner], m.name, count, allowed)}
}
