package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
)

// stormFactor is how much likelier faults are in a storm.
const stormFactor = 4

// do does one action and says to what.
func (r *run) do(ctx context.Context, a action) (string, error) {
	switch a.act {
	case killCore:
		r.core.kill()
	case startCore:
		return "", r.core.start(ctx)
	case killProvider:
		r.provider.kill()
	case startProvider:
		return "", r.provider.start(ctx)
	case outage, endOutage:
		r.coreTarget.Decider.SetOutage(a.act == outage)
		if a.act == endOutage || a.pick%2 == 0 { // Often in the middle of launches.
			r.providerManagement.Decider.SetOutage(a.act == outage)
		}
	case storm, endStorm:
		factor := 1.0
		if a.act == storm {
			factor = stormFactor
		}
		for _, d := range r.deciders() {
			d.SetFactor(factor)
		}
	case rotate:
		return "", r.rotate(ctx)
	case unpause:
		return r.unpause(ctx)
	case deleteNode:
		return r.deleteNode(ctx, a)
	case vanish:
		return r.vanish(ctx, a)
	case fallSilent, spoilNode:
		return r.fallIll(ctx, a)
	case failToJoin:
		r.kubelets.failNext()
	case report:
		r.kubelets.heal()
	case blackout:
		return r.blackout(ctx, a)
	case endBlackout:
		r.kubelets.goDark()
	default:
		done, err := r.change(ctx, a)
		// The object may have gone since it was listed, and the core writes as well.
		return done, client.IgnoreNotFound(err)
	}
	return "", nil
}

// change does what is done to objects.
func (r *run) change(ctx context.Context, a action) (string, error) {
	switch a.act {
	case deleteMachine:
		return r.onMachine(ctx, a, func(m *clusterv1.Machine) error { return r.deleteMachine(ctx, m) })
	case markMachine:
		return r.onMachine(ctx, a, func(m *clusterv1.Machine) error {
			return r.patch(ctx, m, func() { setLabel(m, markLabel, fmt.Sprintf("m%d", a.pick%1000)) })
		})
	case pauseMachine:
		return r.onMachine(ctx, a, func(m *clusterv1.Machine) error { return r.pause(ctx, m) })
	case preferMachine:
		return r.preferMachine(ctx, a)
	case addSurplus:
		return r.addSurplus(ctx, a)
	case unfreeze:
		return r.unfreeze(ctx, false)
	case preserve:
		return r.onMachine(ctx, a, func(m *clusterv1.Machine) error {
			return r.patch(ctx, m, func() { setAnnotation(m, machines.PreserveAnnotation, []string{"now", "when-failed"}[a.pick/7%2]) })
		})
	case scaleSet, pauseSet:
		return r.onSet(ctx, a)
	case deleteSet:
		return r.deleteSet(ctx, a)
	case removeByForce:
		return r.removeByForce(ctx, a)
	case deleteInfra:
		return r.onMachine(ctx, a, func(m *clusterv1.Machine) error {
			r.bereft[m.Name] = true
			// The machine goes first then, and its Node cannot be drained; it may have vanished before.
			r.deletedNodes[m.Status.NodeRef.Name] = true
			for _, instance := range r.account.machines() {
				for _, node := range []string{m.Name, instance.host} {
					r.deletedNodes[node] = r.deletedNodes[node] || instance.providerID == m.Spec.ProviderID
				}
			}
			return r.plane.direct.Delete(ctx, r.cloud.machine(r.meta(m.Name), r.cloud.types[0]))
		})
	case pauseCluster:
		cluster := &clusterv1.Cluster{ObjectMeta: r.meta(clusterName)}
		return "", r.patchSpec(ctx, cluster, func() { cluster.Spec.Paused = ptr.To(true) })
	default:
		return r.onDeployment(ctx, a)
	}
}

// pickOf takes one of a list, if there is any.
func pickOf[T any](list []T, pick uint64) (T, bool) {
	if len(list) == 0 {
		var none T
		return none, false
	}
	return list[pick%uint64(len(list))], true
}

func (r *run) onMachine(ctx context.Context, a action, do func(*clusterv1.Machine) error) (string, error) {
	list := &clusterv1.MachineList{}
	if err := r.listAll(ctx, list); err != nil {
		return "", err
	}
	alive := slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool {
		return !m.DeletionTimestamp.IsZero() || (a.act == preferMachine && m.Labels[setLabelKey] == "") ||
			((a.act == deleteInfra || a.act == removeByForce) && m.Spec.ProviderID == "")
	})
	machine, ok := pickOf(alive, a.pick)
	if !ok {
		return "none there", nil
	}
	return machine.Name + " " + machine.Status.Phase, do(&machine)
}

func (r *run) onSet(ctx context.Context, a action) (string, error) {
	list := &clusterv1.MachineSetList{}
	if err := r.listAll(ctx, list); err != nil {
		return "", err
	}
	if a.act == scaleSet {
		// Only the deployment scales its sets.
		list.Items = slices.DeleteFunc(list.Items, func(s clusterv1.MachineSet) bool {
			return len(s.OwnerReferences) > 0 && s.OwnerReferences[0].Kind == "MachineDeployment"
		})
	}
	set, ok := pickOf(list.Items, a.pick)
	if !ok {
		return "none there", nil
	}
	if a.act == pauseSet {
		return set.Name, r.pause(ctx, &set)
	}
	return r.scale(ctx, &set, &set.Spec.Replicas, r.sizeOf(set.Name), a)
}

// sizeOf is how many Machines a group had at first.
func (r *run) sizeOf(name string) int {
	shape := shapeOf(r.Machines)
	for _, g := range append(shape.deployments, shape.sets...) {
		if g.name == name {
			return g.replicas
		}
	}
	return 1
}

// scale sets the replicas to something between nothing and half as many again as at first.
func (r *run) scale(ctx context.Context, object client.Object, replicas **int32, size int, a action) (string, error) {
	n := int32(float64(size) * 1.5 * a.amount)
	done := fmt.Sprintf("%s from %d to %d", object.GetName(), ptr.Deref(*replicas, 0), n)
	return done, r.patch(ctx, object, func() { *replicas = ptr.To(n) })
}

func (r *run) onDeployment(ctx context.Context, a action) (string, error) {
	if a.act == deleteDeployment {
		return "", r.plane.direct.Delete(ctx, &clusterv1.MachineDeployment{ObjectMeta: r.meta("doomed")})
	}
	list := &clusterv1.MachineDeploymentList{}
	if err := r.listAll(ctx, list); err != nil {
		return "", err
	}
	d, ok := pickOf(list.Items, a.pick)
	if !ok {
		return "none there", nil
	}
	switch a.act {
	case pauseDeployment:
		return d.Name, r.pause(ctx, &d)
	case freeze:
		return d.Name, r.freeze(ctx, &d)
	case scaleDeployment:
		return r.scale(ctx, &d, &d.Spec.Replicas, r.sizeOf(d.Name), a)
	case wave:
		r.waves++
		value := fmt.Sprintf("w%d", r.waves)
		return d.Name + " " + value, r.patch(ctx, &d, func() { d.Spec.Template.Labels[waveLabel] = value })
	}
	template := machineTemplates[int(a.amount*float64(len(machineTemplates)))]
	return d.Name + " " + template, r.patch(ctx, &d, func() { d.Spec.Template.Spec.InfrastructureRef.Name = template })
}

// deleteMachine deletes a Machine. What was created manually for one that the core has never seen is not the core's.
func (r *run) deleteMachine(ctx context.Context, m *clusterv1.Machine) error {
	r.deleted[m.UID] = true
	if err := r.plane.direct.Delete(ctx, m); err != nil {
		return err
	}
	if !r.single[m.Name] {
		return nil
	}
	delete(r.single, m.Name)
	if len(m.Finalizers) > 0 {
		return nil
	}
	for _, object := range r.singleMachine(m.Name) {
		if err := client.IgnoreNotFound(r.plane.direct.Delete(ctx, object)); err != nil {
			return errors.Wrapf(err, "deleting %T %s", object, m.Name)
		}
	}
	return nil
}

// preferMachine removes a Machine as an autoscaler does.
func (r *run) preferMachine(ctx context.Context, a action) (string, error) {
	return r.onMachine(ctx, a, func(m *clusterv1.Machine) error {
		set := &clusterv1.MachineSet{}
		name := m.Labels[setLabelKey]
		if err := r.plane.direct.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, set); err != nil {
			return err
		}
		if err := r.patch(ctx, m, func() { setAnnotation(m, clusterv1.DeleteMachineAnnotation, "yes") }); err != nil {
			return err
		}
		return r.patch(ctx, set, func() { set.Spec.Replicas = ptr.To(max(ptr.Deref(set.Spec.Replicas, 0)-1, 0)) })
	})
}

// deleteSet deletes a set of a deployment, which has to create another.
func (r *run) deleteSet(ctx context.Context, a action) (string, error) {
	list := &clusterv1.MachineSetList{}
	if err := r.listAll(ctx, list); err != nil {
		return "", err
	}
	owned := slices.DeleteFunc(list.Items, func(s clusterv1.MachineSet) bool {
		return len(s.OwnerReferences) == 0 || s.OwnerReferences[0].Kind != "MachineDeployment" || !s.DeletionTimestamp.IsZero()
	})
	set, ok := pickOf(owned, a.pick)
	if !ok {
		return "none there", nil
	}
	return set.Name, r.plane.direct.Delete(ctx, &set)
}

func (r *run) pause(ctx context.Context, object client.Object) error {
	r.paused = append(r.paused, object.DeepCopyObject().(client.Object))
	return r.patch(ctx, object, func() { setAnnotation(object, clusterv1.PausedAnnotation, "") })
}

func (r *run) unpause(ctx context.Context) (string, error) {
	var names []string
	for _, object := range r.paused {
		names = append(names, object.GetName())
		err := r.plane.direct.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			err = r.patch(ctx, object, func() {
				annotations := object.GetAnnotations()
				delete(annotations, clusterv1.PausedAnnotation)
				object.SetAnnotations(annotations)
			})
		}
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
	}
	r.paused = nil
	cluster := &clusterv1.Cluster{ObjectMeta: r.meta(clusterName)}
	return strings.Join(names, ", "), r.patchSpec(ctx, cluster, func() { cluster.Spec.Paused = ptr.To(false) })
}
