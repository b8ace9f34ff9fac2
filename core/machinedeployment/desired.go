package machinedeployment

import (
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// setAnnotationPrefix begins the annotations of a deployment that are meant for its sets.
const setAnnotationPrefix = "machineset.cluster.x-k8s.io/"

var deploymentKind = clusterv1.GroupVersion.WithKind("MachineDeployment")

// newSet is a set for the deployment's template, complete but for its replicas, which are patched when it is there.
//
// If a deleted set has left Machines of this template, the new one takes its place, with as many replicas: it would delete the Machines
// that it adopts otherwise.
func newSet(s *scope, left orphaned) *clusterv1.MachineSet {
	revision := currentRevision(s.deployment, s.sets, nil)
	suffix := nameEnd(s.deployment, revision)
	hash := templateHash(&s.deployment.Spec.Template) + "-" + suffix
	if left.count > 0 {
		suffix, hash = left.suffix, left.hash
	}
	selector := effectiveSelector(s.deployment)
	selector.MatchLabels = with(selector.MatchLabels, clusterv1.MachineDeploymentUniqueLabel, hash)
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.deployment.Namespace,
			Name:            s.deployment.Name + "-" + suffix,
			Finalizers:      []string{clusterv1.MachineSetFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.deployment, deploymentKind)},
		},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: s.deployment.Spec.ClusterName,
			Replicas:    ptr.To(int32(left.count)),
			Selector:    selector,
			Template:    *s.deployment.Spec.Template.DeepCopy(),
		},
	}
	set.Labels = with(nil, clusterv1.MachineDeploymentUniqueLabel, hash)
	set.Labels[machines.CreatorLabel] = string(s.deployment.UID)
	set.Annotations = with(nil, machines.RolloutAfterAnnotation, machines.RolloutAfterRecord(s.deployment, s.Now))
	synchronizeSet(set, s.deployment, revision)
	return set
}

// synchronizeSet applies to a set, in memory, the fields of the deployment that reach existing sets; through
// them, the MachineSet controller reaches Machines (see the table in README.md). revision is zero for sets that
// are not current.
func synchronizeSet(set *clusterv1.MachineSet, deployment *clusterv1.MachineDeployment, revision int64) {
	labels := labelsFor(deployment, set)
	// Labels of the set itself are only added: it may carry some of others.
	set.Labels = merged(set.Labels, labels)
	template := &set.Spec.Template
	if selects(deployment, set) {
		template.Labels = labels
	}
	template.Annotations = maps.Clone(deployment.Spec.Template.Annotations)
	from := deployment.Spec.Template.Spec.DeepCopy()
	template.Spec.Deletion = from.Deletion
	template.Spec.ReadinessGates = from.ReadinessGates
	template.Spec.MinReadySeconds = from.MinReadySeconds
	template.Spec.Taints = from.Taints
	set.Spec.Deletion.Order = deployment.Spec.Deletion.Order
	set.Spec.MachineNaming = deployment.Spec.MachineNaming
	synchronizeAnnotations(set, deployment, revision)
}

// synchronizeAnnotations copies what is meant for sets, and marks the current set with its revision. Outdated
// sets under OnDelete must not replace what a user deletes.
func synchronizeAnnotations(set *clusterv1.MachineSet, deployment *clusterv1.MachineDeployment, revision int64) {
	annotations := merged(set.Annotations, nil)
	for key := range set.Annotations {
		if strings.HasPrefix(key, setAnnotationPrefix) {
			delete(annotations, key)
		}
	}
	for key, value := range deployment.Annotations {
		if strings.HasPrefix(key, setAnnotationPrefix) {
			annotations[key] = value
		}
	}
	delete(annotations, clusterv1.DisableMachineCreateAnnotation)
	if revision > 0 {
		annotations[clusterv1.RevisionAnnotation] = strconv.FormatInt(revision, 10)
	} else if deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		annotations[clusterv1.DisableMachineCreateAnnotation] = "true"
	}
	set.Annotations = annotations
}

// with is a copy of the map with one more entry.
func with(values map[string]string, key, value string) map[string]string {
	return merged(values, map[string]string{key: value})
}

// merged is a copy of the first map with the entries of the second over it.
func merged(values, over map[string]string) map[string]string {
	result := make(map[string]string, len(values)+len(over))
	maps.Copy(result, values)
	maps.Copy(result, over)
	return result
}
