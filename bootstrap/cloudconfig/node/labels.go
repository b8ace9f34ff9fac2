package node

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// kubeletLabels are the labels outside of kubelet.kubernetes.io and node.kubernetes.io that a kubelet
// may give itself: the list of the flag --node-labels, in
// k8s.io/kubernetes/pkg/kubelet/apis/well_known_labels.go.
var kubeletLabels = []string{
	"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "node.kubernetes.io/instance-type",
	"topology.kubernetes.io/zone", "topology.kubernetes.io/region", "beta.kubernetes.io/instance-type", "beta.kubernetes.io/os",
	"beta.kubernetes.io/arch", "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
}

// InvalidLabelError means that a kubelet would refuse a label, and not start.
type InvalidLabelError struct {
	// Key of the label.
	Key string
}

// Error implements error.
func (e *InvalidLabelError) Error() string {
	return fmt.Sprintf("a kubelet may not set label %q; set it on the Machine, or use another key", e.Key)
}

// checkLabels returns an *InvalidLabelError for the first key that a kubelet would refuse.
func checkLabels(labels map[string]bootstrapv1.LabelValue) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if len(validation.IsQualifiedName(key)) > 0 || !kubeletMaySet(key) {
			return &InvalidLabelError{Key: key}
		}
	}
	return nil
}

func kubeletMaySet(key string) bool {
	namespace, _, found := strings.Cut(key, "/")
	reserved := within(namespace, "kubernetes.io") || within(namespace, "k8s.io")
	if !found || !reserved {
		return true
	}
	return within(namespace, "kubelet.kubernetes.io") || within(namespace, "node.kubernetes.io") || slices.Contains(kubeletLabels, key)
}

func within(namespace, domain string) bool {
	return namespace == domain || strings.HasSuffix(namespace, "."+domain)
}
