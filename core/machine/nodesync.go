package machine

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Wishes is what a Machine wants of its Node.
type Wishes struct {
	// Labels are set, and removed again when they are no longer wished.
	Labels map[string]string
	// Annotations likewise.
	Annotations map[string]string
	// Identity are annotations that say to whom the Node belongs; they are set, and never removed.
	Identity map[string]string
}

// Synced is the result of SyncNode.
type Synced struct {
	// Changed is true when the Node was changed at all, Taints when its taints were.
	Changed, Taints bool
}

// SyncNode changes the Node to what is wished. Which labels and annotations came from the Machine is kept in two
// annotations of the Node, so that only those are removed; what others have set stays. The taint
// node.cluster.x-k8s.io/uninitialized goes in the same change: it holds pods off until the labels are there.
func SyncNode(node *corev1.Node, wishes Wishes) Synced {
	before := snapshot{maps.Clone(node.Labels), maps.Clone(node.Annotations)}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	replace(node.Labels, tracked(node.Annotations[clusterv1.LabelsFromMachineAnnotation]), wishes.Labels)
	replace(node.Annotations, tracked(node.Annotations[clusterv1.AnnotationsFromMachineAnnotation]), wishes.Annotations)
	maps.Copy(node.Annotations, wishes.Identity)
	node.Annotations[clusterv1.LabelsFromMachineAnnotation] = track(wishes.Labels)
	node.Annotations[clusterv1.AnnotationsFromMachineAnnotation] = track(wishes.Annotations)

	taints := len(node.Spec.Taints)
	node.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return taint.MatchTaint(&clusterv1.NodeUninitializedTaint)
	})
	result := Synced{Taints: len(node.Spec.Taints) != taints}
	result.Changed = result.Taints || !maps.Equal(before.labels, node.Labels) || !maps.Equal(before.annotations, node.Annotations)
	return result
}

// snapshot is what a Node had before.
type snapshot struct{ labels, annotations map[string]string }

// replace removes the entries that were set before and are not wished any more, and sets those that are.
func replace(have map[string]string, before []string, wished map[string]string) {
	for _, key := range before {
		if _, ok := wished[key]; !ok {
			delete(have, key)
		}
	}
	maps.Copy(have, wished)
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

// wishes concludes what the Machine wants of its Node.
func (s *scope) wishes() Wishes {
	wishes := Wishes{
		Labels:      selected(s.machine.Labels, labelForNode, s.options.SyncLabels),
		Annotations: selected(s.machine.Annotations, annotationForNode, s.options.SyncAnnotations),
		Identity: map[string]string{
			clusterv1.ClusterNameAnnotation:      s.machine.Spec.ClusterName,
			clusterv1.ClusterNamespaceAnnotation: s.machine.Namespace,
			clusterv1.MachineAnnotation:          s.machine.Name,
		},
	}
	if s.interruptible {
		wishes.Labels[clusterv1.InterruptibleLabel] = ""
	}
	if owner := metav1.GetControllerOf(s.machine); owner != nil {
		wishes.Identity[clusterv1.OwnerKindAnnotation] = owner.Kind
		wishes.Identity[clusterv1.OwnerNameAnnotation] = owner.Name
	}
	return wishes
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
	return domain == clusterv1.NodeRoleLabelPrefix || within(domain, clusterv1.NodeRestrictionLabelDomain) || within(domain, clusterv1.ManagedNodeLabelDomain)
}

// annotationForNode chooses the annotations that go to the Node by their domain.
func annotationForNode(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return within(domain, clusterv1.ManagedNodeAnnotationDomain)
}

// within says whether a domain is the other or one below it.
func within(domain, of string) bool {
	return domain == of || strings.HasSuffix(domain, "."+of)
}
