package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/index"
)

// workers are the Machines of a Cluster as their owners report on them. Machines of a MachineSet are not read: the status of their
// owner aggregates a thousand of them.
type workers struct {
	// deployments are the MachineDeployments; sets and machines are the MachineSets and Machines that none of those owns.
	deployments, sets, machines []part
	// controlPlane are the Machines of the control plane.
	controlPlane []part
	// counts are the replicas of the workers, controlPlaneCounts those of the control plane.
	counts, controlPlaneCounts counts
}

// part is an object that reports on Machines.
type part struct {
	// name is the kind and the name of the object.
	name       string
	conditions []metav1.Condition
}

// counts are numbers of Machines.
type counts struct {
	desired, current, ready, available, upToDate int32
	versions                                     map[string]int32
}

func (c *counts) add(desired, current, ready, available, upToDate *int32, versions []clusterv1.StatusVersion) {
	c.desired += ptr.Deref(desired, 0)
	c.current += ptr.Deref(current, 0)
	c.ready += ptr.Deref(ready, 0)
	c.available += ptr.Deref(available, 0)
	c.upToDate += ptr.Deref(upToDate, 0)
	for _, version := range versions {
		if c.versions == nil {
			c.versions = map[string]int32{}
		}
		c.versions[version.Version] += version.Replicas
	}
}

// sortedVersions returns the versions by their names.
func (c *counts) sortedVersions() []clusterv1.StatusVersion {
	var versions []clusterv1.StatusVersion
	for _, version := range slices.Sorted(maps.Keys(c.versions)) {
		versions = append(versions, clusterv1.StatusVersion{Version: version, Replicas: c.versions[version]})
	}
	return versions
}

// readWorkers reads from the cache the objects that report on the Cluster's Machines.
func (r *Reconciler) readWorkers(ctx context.Context, s *scope) outcome.Outcome {
	found := &workers{}
	for _, read := range []func(context.Context, *scope, *workers) error{r.readDeployments, r.readSets, r.readMachines} {
		if err := read(ctx, s, found); err != nil {
			return outcome.FromError(errors.Wrapf(err, "reading the workers of Cluster %s", s.Request()))
		}
	}
	for _, parts := range [][]part{found.deployments, found.sets, found.machines, found.controlPlane} {
		slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	}
	s.workers = found
	return outcome.Continue()
}

func (r *Reconciler) readDeployments(ctx context.Context, s *scope, found *workers) error {
	list := &clusterv1.MachineDeploymentList{}
	if err := r.list(ctx, s, list, index.Cluster); err != nil {
		return err
	}
	for i := range list.Items {
		deployment := &list.Items[i]
		status := &deployment.Status
		found.deployments = append(found.deployments, part{"MachineDeployment " + deployment.Name, status.Conditions})
		found.counts.add(
			deployment.Spec.Replicas,
			status.Replicas,
			status.ReadyReplicas,
			status.AvailableReplicas,
			status.UpToDateReplicas,
			status.Versions,
		)
	}
	return nil
}

func (r *Reconciler) readSets(ctx context.Context, s *scope, found *workers) error {
	list := &clusterv1.MachineSetList{}
	if err := r.list(ctx, s, list, index.Cluster); err != nil {
		return err
	}
	for i := range list.Items {
		set := &list.Items[i]
		if metav1.GetControllerOf(set) != nil {
			continue
		}
		status := &set.Status
		found.sets = append(found.sets, part{"MachineSet " + set.Name, status.Conditions})
		found.counts.add(
			set.Spec.Replicas,
			status.Replicas,
			status.ReadyReplicas,
			status.AvailableReplicas,
			status.UpToDateReplicas,
			status.Versions,
		)
	}
	return nil
}

func (r *Reconciler) readMachines(ctx context.Context, s *scope, found *workers) error {
	list := &clusterv1.MachineList{}
	if err := r.list(ctx, s, list, index.Standalone); err != nil {
		return err
	}
	for i := range list.Items {
		machine := &list.Items[i]
		one := part{"Machine " + machine.Name, machine.Status.Conditions}
		into := &found.counts
		if _, ok := machine.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			found.controlPlane = append(found.controlPlane, one)
			into = &found.controlPlaneCounts
		} else {
			found.machines = append(found.machines, one)
		}
		into.add(
			ptr.To[int32](1),
			ptr.To[int32](1),
			countTrue(one, clusterv1.MachineReadyCondition),
			countTrue(one, clusterv1.MachineAvailableCondition),
			countTrue(one, clusterv1.MachineUpToDateCondition),
			nil,
		)
	}
	return nil
}

func (r *Reconciler) list(ctx context.Context, s *scope, list client.ObjectList, field string) error {
	return r.Client.List(
		ctx,
		list,
		client.InNamespace(s.Original.Namespace),
		client.MatchingFields{field: s.Original.Name},
		client.UnsafeDisableDeepCopy,
	)
}

// countTrue is 1 when the condition is True.
func countTrue(p part, conditionType string) *int32 {
	if found := find(p.conditions, conditionType); found != nil && found.Status == metav1.ConditionTrue {
		return ptr.To[int32](1)
	}
	return nil
}

// setWorkers sets the replicas in the status.
func (s *scope) setWorkers() {
	if s.workers == nil {
		return
	}
	c := &s.workers.counts
	s.Object.Status.Workers = &clusterv1.WorkersStatus{
		DesiredReplicas: ptr.To(c.desired), Replicas: ptr.To(c.current), ReadyReplicas: ptr.To(c.ready),
		AvailableReplicas: ptr.To(c.available), UpToDateReplicas: ptr.To(c.upToDate), Versions: c.sortedVersions(),
	}
	if s.controlPlane.ref.IsDefined() || len(s.workers.controlPlane) == 0 {
		return
	}
	c = &s.workers.controlPlaneCounts
	s.Object.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{
		DesiredReplicas: ptr.To(c.desired), Replicas: ptr.To(c.current), ReadyReplicas: ptr.To(c.ready),
		AvailableReplicas: ptr.To(c.available), UpToDateReplicas: ptr.To(c.upToDate),
	}
}
