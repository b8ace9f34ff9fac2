package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/overshoot"
)

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
	// preserved means that a Machine is kept for inspection, and was not released.
	preserved bool
	// replaces means that a Machine was created as the replacement of an unhealthy one.
	replaces bool
	// retry is the number of replacements before this Machine, each of which became unhealthy as well.
	retry int
	// held is why a set does not replace its unhealthy Machines; "" if it does.
	held string
	// surplus means that the run has created the Machine beyond the replicas.
	surplus bool
	// frozen means that a set or a deployment says that no Machine is created, overshoot that the core has concluded that itself.
	frozen, overshoot bool
	// ended is when the deletion began, to the second.
	ended time.Time
	// limit is how many Machines a set or a deployment may have by its spec.
	limit int
	// generation is that of the spec, observed the one that the core says it has acted on.
	generation, observed int64
}

// history is every change of Machines, MachineSets and MachineDeployments, read without faults.
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
	m := moment{
		at:         time.Now(),
		uid:        object.GetUID(),
		name:       object.GetName(),
		gone:       gone,
		deleting:   object.GetDeletionTimestamp() != nil,
		generation: object.GetGeneration(),
	}
	m.version, _ = strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if owner := metav1.GetControllerOf(object); owner != nil {
		m.owner = owner.UID
	}
	switch {
	case m.deleting:
		m.ended = object.GetDeletionTimestamp().Time
	case gone:
		m.ended = m.at.Truncate(time.Second)
	}
	freeze := object.GetLabels()[overshoot.FrozenLabel]
	m.frozen, m.overshoot = freeze != "", freeze == overshoot.Overshoot
	switch o := object.(type) {
	case *clusterv1.Machine:
		m.kind = "Machine"
		m.preserved = preserved(o)
		_, m.surplus = o.Annotations[surplusAnnotation]
		if record := remediation.RecordOf(o); record != nil {
			m.replaces, m.retry = true, record.Retry
		}
	case *clusterv1.MachineSet:
		m.held = heldBecause(o)
		m.kind, m.limit, m.observed = "MachineSet", int(ptr.Deref(o.Spec.Replicas, 1)), o.Status.ObservedGeneration
	case *clusterv1.MachineDeployment:
		m.kind, m.limit = "MachineDeployment", int(ptr.Deref(o.Spec.Replicas, 1))+surge(o)
		m.observed = o.Status.ObservedGeneration
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.moments = append(h.moments, m)
}

// write lists everything, in order, for the analysis of an excess.
func (h *history) write(path string) error {
	var text strings.Builder
	for _, m := range h.inOrder() {
		fmt.Fprintf(&text, "%s %d %s %s", m.at.Format("15:04:05.000"), m.version, m.kind, m.name)
		switch {
		case m.gone:
			text.WriteString(" gone")
		case m.deleting:
			text.WriteString(" deleting")
		}
		if m.preserved {
			text.WriteString(" preserved")
		}
		if m.surplus {
			text.WriteString(" surplus")
		}
		if m.frozen {
			text.WriteString(" frozen")
		}
		if m.retry > 0 {
			fmt.Fprintf(&text, " retry %d", m.retry)
		}
		if m.held != "" {
			fmt.Fprintf(&text, " replaces none: %s", m.held)
		}
		if m.kind != "Machine" {
			fmt.Fprintf(&text, " at most %d, generation %d, observed %d", m.limit, m.generation, m.observed)
		}
		fmt.Fprintf(&text, " (%s of %s)\n", m.uid, m.owner)
	}
	return errors.Wrap(os.WriteFile(path, []byte(text.String()), 0o600), "writing the history")
}

func (h *history) inOrder() []moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(h.moments), func(a, b moment) int { return cmp.Compare(a.version, b.version) })
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

// checkPast fails if anything has happened in the run that never may, and notes the figures.
func (r *run) checkPast() error {
	if err := r.history.write(filepath.Join(r.Dir, historyLog)); err != nil {
		return err
	}
	if excesses := r.history.excesses(); len(excesses) > 0 {
		return errors.Errorf("too many Machines, see %s:\n%s", historyLog, strings.Join(excesses, "\n"))
	}
	if lost := r.history.lost(r.deleted); len(lost) > 0 {
		return errors.Errorf("Machines were not kept for inspection, see %s:\n%s", historyLog, strings.Join(lost, "\n"))
	}
	if ended := r.guard.violations(); len(ended) > 0 {
		return errors.Errorf("instances have ended that are claimed:\n%s", strings.Join(ended, "\n"))
	}
	if created := r.history.createdInFreeze(); len(created) > 0 {
		return errors.Errorf("Machines were created in a freeze, see %s:\n%s", historyLog, strings.Join(created, "\n"))
	}
	if over := r.history.overRetried(maxRetry); len(over) > 0 {
		return errors.Errorf("too many retries, see %s:\n%s", historyLog, strings.Join(over, "\n"))
	}
	r.note("%d Machines were preserved; %s", r.history.preserved(), r.history.summary())
	orphans, err := r.orphansSummary()
	if err != nil {
		return err
	}
	overshoots, surplus := r.history.freezes()
	r.note("%s; %d surplus Machines were created, and %d times creation was frozen for it", orphans, surplus, overshoots)
	return nil
}
