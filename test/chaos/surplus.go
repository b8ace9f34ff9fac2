package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/overshoot"
)

const (
	// surplusAnnotation is on Machines that the run creates for a set, as another controller would.
	surplusAnnotation = "chaos.millwright.dev/surplus"
	// freezeByHand is the value with which the run stops creation.
	freezeByHand = "maintenance"
	// settled is how long after a freeze has begun nothing may come any more: what was on its way then has arrived.
	settled = 10 * time.Second
)

// addSurplus creates Machines for a set beyond its replicas: enough for a freeze, if the set does not delete them before they are
// counted.
func (r *run) addSurplus(ctx context.Context, a action) (string, error) {
	list := &clusterv1.MachineSetList{}
	if err := r.listAll(ctx, list); err != nil {
		return "", err
	}
	set, ok := pickOf(slices.DeleteFunc(list.Items, func(s clusterv1.MachineSet) bool { return !s.DeletionTimestamp.IsZero() }), a.pick)
	if !ok {
		return "none there", nil
	}
	// Every other time the set is paused, as by a user: it deletes nothing then, and all are counted.
	paused := ""
	if a.pick/7%2 == 0 {
		paused = ", which is paused"
		if err := r.pause(ctx, &set); err != nil {
			return "", err
		}
	}
	n := 4 + int(3*a.amount) + r.sizeOf(set.Labels[clusterv1.MachineDeploymentNameLabel])/3
	for range n {
		r.surplus++
		if err := r.plane.direct.Create(ctx, r.surplusMachine(&set, fmt.Sprintf("surplus-%d", r.surplus))); err != nil {
			return "", errors.Wrap(err, "creating a surplus Machine")
		}
	}
	return fmt.Sprintf("%d for %s%s", n, set.Name, paused), nil
}

// surplusMachine is a Machine as the set creates it; the set creates what else belongs to it.
func (r *run) surplusMachine(set *clusterv1.MachineSet, name string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: r.meta(name), Spec: *set.Spec.Template.Spec.DeepCopy()}
	maps.Copy(m.Labels, set.Spec.Template.Labels)
	m.Labels[clusterv1.MachineSetNameLabel] = set.Name
	if deployment := set.Labels[clusterv1.MachineDeploymentNameLabel]; deployment != "" {
		m.Labels[clusterv1.MachineDeploymentNameLabel] = deployment
	}
	m.Annotations = map[string]string{surplusAnnotation: ""}
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
	for _, ref := range []*clusterv1.ContractVersionedObjectReference{&m.Spec.Bootstrap.ConfigRef, &m.Spec.InfrastructureRef} {
		ref.Name, ref.Kind = name, strings.TrimSuffix(ref.Kind, "Template")
	}
	return m
}

// strays are surplus Machines whose set was gone when they came, or went before it knew of them: the garbage collector deletes them.
func (s *state) strays() []*clusterv1.Machine {
	sets := map[types.UID]bool{}
	for i := range s.sets.Items {
		sets[s.sets.Items[i].UID] = true
	}
	var found []*clusterv1.Machine
	for i := range s.machines.Items {
		m := &s.machines.Items[i]
		_, surplus := m.Annotations[surplusAnnotation]
		if owner := metav1.GetControllerOf(m); surplus && owner != nil && owner.Kind == "MachineSet" && !sets[owner.UID] {
			found = append(found, m)
		}
	}
	return found
}

// freeze stops the creation of Machines of a deployment, as users do manually.
func (r *run) freeze(ctx context.Context, d *clusterv1.MachineDeployment) error {
	return r.patch(ctx, d, func() { setLabel(d, overshoot.FrozenLabel, freezeByHand) })
}

// unfreeze requests the end of all freezes, or only of manual ones.
func (r *run) unfreeze(ctx context.Context, byHand bool) (string, error) {
	deployments, sets := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := r.listAll(ctx, list); err != nil {
			return "", err
		}
	}
	var objects []client.Object
	for i := range deployments.Items {
		objects = append(objects, &deployments.Items[i])
	}
	for i := range sets.Items {
		objects = append(objects, &sets.Items[i])
	}
	var names []string
	for _, object := range objects {
		value := object.GetLabels()[overshoot.FrozenLabel]
		if value == "" || value == overshoot.ByDeployment || byHand && value == overshoot.Overshoot {
			continue
		}
		names = append(names, object.GetName()+" ("+value+")")
		err := r.patch(ctx, object, func() { setAnnotation(object, overshoot.UnfreezeAnnotation, "") })
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
	}
	return strings.Join(names, ", "), nil
}

// createdInFreeze are the Machines that a set got, but for those of the run, while its deployment or itself had been frozen for a while.
func (h *history) createdInFreeze() []string {
	var found []string
	since, deployments, known := map[types.UID]time.Time{}, map[types.UID]types.UID{}, map[types.UID]bool{}
	for _, m := range h.inOrder() {
		if m.kind != "Machine" {
			if m.owner != "" {
				deployments[m.uid] = m.owner
			}
			if _, before := since[m.uid]; !m.frozen {
				delete(since, m.uid)
			} else if !before {
				since[m.uid] = m.at
			}
			continue
		}
		if known[m.uid] || m.gone {
			continue
		}
		known[m.uid] = true
		if m.surplus || m.owner == "" {
			continue
		}
		for _, owner := range []types.UID{m.owner, deployments[m.owner]} {
			if begin, frozen := since[owner]; frozen && m.at.Sub(begin) > settled {
				found = append(found, fmt.Sprintf("Machine %s came %s after its creation was frozen", m.name, m.at.Sub(begin).Round(time.Millisecond)))
				break
			}
		}
	}
	return found
}

// freezes is how often a deployment or a set was frozen because it had too many Machines, and how many of those the run has created.
func (h *history) freezes() (overshoots, surplus int) {
	before, made := map[types.UID]bool{}, map[types.UID]bool{}
	for _, m := range h.inOrder() {
		if m.overshoot && !before[m.uid] {
			overshoots++
		}
		before[m.uid] = m.overshoot
		if m.surplus {
			made[m.uid] = true
		}
	}
	return overshoots, len(made)
}
