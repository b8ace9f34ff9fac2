package machine

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// DesiredNode is what a Node should have by its Machine.
type DesiredNode struct {
	// Labels are set, and removed again when they are no longer desired.
	Labels map[string]string
	// Annotations likewise.
	Annotations map[string]string
	// Identity are annotations that name what the Node belongs to. Of those that identityAnnotations names, those
	// that are not desired are removed.
	Identity map[string]string
	// Taints are those of the Machine's spec; they count only when PropagateTaints is set.
	Taints          []clusterv1.MachineTaint
	PropagateTaints bool
	// Outdated means that the Node belongs to an earlier revision of a MachineDeployment: pods had better go elsewhere.
	Outdated bool
	// OutdatedUnknown means that it is not known whether it does: the marks of that on the Node stay as they are.
	OutdatedUnknown bool
	// KeepFromScaleDown means that the cluster autoscaler shall not remove an outdated Node.
	KeepFromScaleDown bool
	// Preserved means that the Machine is kept for inspection: its Node is cordoned and tainted.
	Preserved bool
}

// identityAnnotations are the annotations of a Node that name what it belongs to.
var identityAnnotations = []string{
	clusterv1.ClusterNameAnnotation, clusterv1.ClusterNamespaceAnnotation, clusterv1.MachineAnnotation,
	clusterv1.OwnerKindAnnotation, clusterv1.OwnerNameAnnotation,
}

// ownAnnotations are the annotations of a Node that the core manages, and that no expression of a flag selects.
var ownAnnotations = append([]string{
	clusterv1.LabelsFromMachineAnnotation, clusterv1.AnnotationsFromMachineAnnotation, clusterv1.TaintsFromMachineAnnotation,
	ScaleDownDisabledMarkerAnnotation, OutdatedRevisionMarkerAnnotation,
}, identityAnnotations...)

// Synced is the result of SyncNode.
type Synced struct {
	// Changed is true when the Node was changed at all, Taints when its taints were.
	Changed, Taints bool
}

// SyncNode changes the Node to what is desired. Which labels, annotations and taints came from the Machine is kept in
// annotations of the Node, as Cluster API keeps it, so that only those are removed; what others have set stays. The taint
// node.cluster.x-k8s.io/uninitialized goes in the same change: it holds pods off until the labels are there.
func SyncNode(node *corev1.Node, desired DesiredNode) Synced {
	before := snapshot{maps.Clone(node.Labels), maps.Clone(node.Annotations)}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	replace(node.Labels, tracked(node.Annotations[clusterv1.LabelsFromMachineAnnotation]), desired.Labels)
	replace(node.Annotations, tracked(node.Annotations[clusterv1.AnnotationsFromMachineAnnotation]), desired.Annotations)
	for _, key := range identityAnnotations {
		delete(node.Annotations, key)
	}
	maps.Copy(node.Annotations, desired.Identity)
	node.Annotations[clusterv1.LabelsFromMachineAnnotation] = track(desired.Labels)
	node.Annotations[clusterv1.AnnotationsFromMachineAnnotation] = track(desired.Annotations)

	if !desired.OutdatedUnknown {
		syncScaleDown(node, desired.Outdated, desired.KeepFromScaleDown)
	}

	result := Synced{Taints: syncTaints(node, desired)}
	result.Taints = syncPreserved(node, desired.Preserved) || result.Taints
	result.Changed = result.Taints || !maps.Equal(before.labels, node.Labels) || !maps.Equal(before.annotations, node.Annotations)
	return result
}

// snapshot is what a Node had before.
type snapshot struct{ labels, annotations map[string]string }

// replace removes the entries that were set before and are not desired any more, and sets those that are.
func replace(have map[string]string, before []string, desired map[string]string) {
	for _, key := range before {
		if _, ok := desired[key]; !ok {
			delete(have, key)
		}
	}
	maps.Copy(have, desired)
}

// tracked reads a tracking annotation, track writes it.
func tracked(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

func track(entries map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(entries)), ",")
}

// desired derives what the Node should have.
func (s *scope) desired() DesiredNode {
	desired := DesiredNode{
		Labels:      selected(s.Object.Labels, labelForNode, s.options.SyncLabels),
		Annotations: selected(s.Object.Annotations, annotationForNode, s.options.SyncAnnotations),
		Identity: map[string]string{
			clusterv1.ClusterNameAnnotation:      s.Object.Spec.ClusterName,
			clusterv1.ClusterNamespaceAnnotation: s.Object.Namespace,
			clusterv1.MachineAnnotation:          s.Object.Name,
		},
		Taints: s.Object.Spec.Taints, PropagateTaints: s.options.PropagateTaints,
		Outdated: s.outdatedRevision(), OutdatedUnknown: s.ownersUnknown, KeepFromScaleDown: s.options.KeepOutdatedFromScaleDown,
		Preserved: machines.Preserved(s.Object),
	}
	maps.DeleteFunc(desired.Annotations, func(key, _ string) bool { return slices.Contains(ownAnnotations, key) })
	if s.interruptible || !s.infrastructureRead && s.hasOwnLabel(clusterv1.InterruptibleLabel) {
		desired.Labels[clusterv1.InterruptibleLabel] = ""
	}
	if owner := metav1.GetControllerOf(s.Object); owner != nil {
		desired.Identity[clusterv1.OwnerKindAnnotation] = owner.Kind
		desired.Identity[clusterv1.OwnerNameAnnotation] = owner.Name
	}
	return desired
}

// hasOwnLabel reports whether the Node has a label that came from the Machine.
func (s *scope) hasOwnLabel(key string) bool {
	if s.node == nil {
		return false
	}
	_, present := s.node.Labels[key]
	return present && slices.Contains(tracked(s.node.Annotations[clusterv1.LabelsFromMachineAnnotation]), key)
}

// selected returns the entries whose key the rule or one of the expressions chooses.
func selected(entries map[string]string, rule func(string) bool, expressions []*regexp.Regexp) map[string]string {
	chosen := map[string]string{}
	for key, value := range entries {
		if rule(key) || slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(key) }) {
			chosen[key] = value
		}
	}
	return chosen
}

// labelForNode chooses the labels that go to the Node by their domain, as the Cluster API defines it.
func labelForNode(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == clusterv1.NodeRoleLabelPrefix || within(domain, clusterv1.NodeRestrictionLabelDomain) ||
		within(domain, clusterv1.ManagedNodeLabelDomain)
}

// annotationForNode chooses the annotations that go to the Node by their domain.
func annotationForNode(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return within(domain, clusterv1.ManagedNodeAnnotationDomain)
}

// within reports whether a domain is the other or one below it.
func within(domain, of string) bool {
	return domain == of || strings.HasSuffix(domain, "."+of)
}
