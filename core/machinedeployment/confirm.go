package machinedeployment

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// marks remembers for which generation of a deployment the cache has shown its Machines marked as the API server had them.
// The client that lowers replicas marks Machines before that, so the marks seen then are valid for the whole scale-down, and one
// list is enough. It is in memory alone: a process that starts asks once more. The zero value is ready for use.
type marks struct {
	mu    sync.Mutex
	shown map[types.UID]int64
}

func (m *marks) shows(deployment *clusterv1.MachineDeployment) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	generation, ok := m.shown[deployment.UID]
	return ok && generation == deployment.Generation
}

func (m *marks) note(deployment *clusterv1.MachineDeployment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shown == nil {
		m.shown = map[types.UID]int64{}
	}
	m.shown[deployment.UID] = deployment.Generation
}

// forget drops a deployment that goes.
func (m *marks) forget(deployment types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.shown, deployment)
}

// confirm plans again with the Machines as the API server has them, where the plan decides which of several sets gives up
// Machines: what lowered the number of replicas, as a cluster autoscaler, has chosen them a moment ago, and the cache may
// not show it yet.
func (r *Reconciler) confirm(ctx context.Context, s *scope, planned plan) (plan, outcome.Outcome) {
	if !choosesAmongSets(s, planned) || r.marks.shows(s.deployment) {
		return planned, outcome.Continue()
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if err := r.APIReader.List(
		ctx,
		list,
		client.InNamespace(s.deployment.Namespace),
		client.MatchingLabelsSelector{Selector: s.settings.selector},
	); err != nil {
		return plan{}, outcome.FromError(errors.Wrap(err, "listing Machines to see which of them are chosen for deletion"))
	}
	all := marksShown
	for _, set := range s.sets {
		all = max(all, s.takeLive(set, list.Items))
	}
	switch all {
	case marksUnseen:
		return plan{}, outcome.WaitFor(minUnseen)
	case marksShown:
		r.marks.note(s.deployment)
	}
	return makePlan(r.look(s)), outcome.Continue()
}

// minUnseen is how soon to look again for a Machine that is chosen to go and that the cache does not show.
const minUnseen = time.Second

// choosesAmongSets reports whether Machines are to go, or are too many, while more than one set has any.
func choosesAmongSets(s *scope, planned plan) bool {
	having := 0
	for _, set := range s.sets {
		if desired(set) > 0 || len(s.machines[set.UID]) > 0 {
			having++
		}
	}
	lowers := slices.ContainsFunc(planned.scale, func(step intent) bool { return step.to < step.from })
	return having > 1 && (lowers || existing(s) > wanted(s))
}

// knowledge is how much of the marks of Machines the cache has shown.
type knowledge int

const (
	// marksShown means that Machines are marked in the cache as they are.
	marksShown knowledge = iota
	// marksCorrected means that the API server knew better.
	marksCorrected
	// marksUnseen means that a Machine is marked of which the cache shows nothing.
	marksUnseen
)

// takeLive corrects the Machines of a set by the metadata that the API server has. They keep the version under which the
// rest of them was read: one that has changed is not deleted before all of it is known. Machines that the cache does not
// show are left to it, as nothing is known of them but their name.
func (s *scope) takeLive(set *clusterv1.MachineSet, items []metav1.PartialObjectMetadata) knowledge {
	live := map[types.UID]*clusterv1.Machine{}
	for i := range items {
		if metav1.IsControlledBy(&items[i], set) {
			live[items[i].UID] = &clusterv1.Machine{ObjectMeta: items[i].ObjectMeta}
		}
	}
	known := marksShown
	all := make([]*clusterv1.Machine, 0, len(s.machines[set.UID]))
	for _, cached := range s.machines[set.UID] {
		found := live[cached.UID]
		delete(live, cached.UID)
		changed := *cached
		switch {
		case found != nil:
			if !machines.SameMarks(cached, found) {
				known = marksCorrected
			}
			changed.Annotations, changed.DeletionTimestamp = found.Annotations, found.DeletionTimestamp
		case s.settings.selector.Matches(labels.Set(cached.Labels)) && cached.DeletionTimestamp.IsZero():
			// It was deleted, and the cache does not show that yet.
			changed.DeletionTimestamp = &metav1.Time{Time: s.Now}
		}
		all = append(all, &changed)
	}
	s.machines[set.UID] = all
	for _, machine := range live {
		if machine.DeletionTimestamp.IsZero() && !machines.SameMarks(&clusterv1.Machine{}, machine) {
			known = marksUnseen
		}
	}
	return known
}
