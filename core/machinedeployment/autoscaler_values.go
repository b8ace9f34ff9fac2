package machinedeployment

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Annotations by which the cluster autoscaler learns what a Node of a group will have. They override the status of the infrastructure
// template, see kubernetes/autoscaler, cluster-autoscaler/cloudprovider/clusterapi.
const (
	cpuAnnotation    = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	memoryAnnotation = "capacity.cluster-autoscaler.kubernetes.io/memory"
	diskAnnotation   = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk"
	podsAnnotation   = "capacity.cluster-autoscaler.kubernetes.io/maxPods"
	labelsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/labels"
	taintsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// resources are those that are learned from Nodes. Devices are not: their plugins report them later than the Node is ready.
var resources = map[string]corev1.ResourceName{
	cpuAnnotation: corev1.ResourceCPU, memoryAnnotation: corev1.ResourceMemory,
	diskAnnotation: corev1.ResourceEphemeralStorage, podsAnnotation: corev1.ResourcePods,
}

// usable returns the least that Pods can use of each of the Nodes. It is what is allocatable, since the autoscaler has no other number
// for what is reserved. A number that is up to 1 % more than the previous one changes nothing: Nodes of a type differ by some KiB.
func usable(nodes []*corev1.Node, previous map[string]string) map[string]string {
	values := map[string]string{}
	for key, name := range resources {
		var least *resource.Quantity
		for _, node := range nodes {
			if q, ok := node.Status.Allocatable[name]; ok && (least == nil || q.Cmp(*least) < 0) {
				least = &q
			}
		}
		if least == nil || least.IsZero() {
			continue
		}
		values[key] = least.String()
		if before, err := resource.ParseQuantity(previous[key]); err == nil &&
			before.Cmp(*least) <= 0 && least.AsApproximateFloat64() <= 1.01*before.AsApproximateFloat64() {
			values[key] = previous[key]
		}
	}
	return values
}

// lasting returns the taints that a Node still has. The others were for its first minutes: no Pod has to tolerate them.
func lasting(taints []corev1.Taint, node *corev1.Node) []corev1.Taint {
	var kept []corev1.Taint
	for _, taint := range taints {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			kept = append(kept, taint)
		}
	}
	return kept
}

// taintsOf returns the taints that a bootstrap template gives Nodes at their registration: a CloudConfigTemplate or a
// KubeadmConfigTemplate. Of other kinds it is not known.
func taintsOf(template *unstructured.Unstructured) []corev1.Taint {
	for _, path := range [][]string{{"kubelet", "taints"}, {"joinConfiguration", "nodeRegistration", "taints"}} {
		var taints []corev1.Taint
		if decodeField(template, path, &taints) {
			return taints
		}
	}
	return nil
}

// labelsOf is taintsOf for labels.
func labelsOf(template *unstructured.Unstructured) map[string]string {
	var labels map[string]string
	if decodeField(template, []string{"kubelet", "nodeLabels"}, &labels) {
		return labels
	}
	for label := range strings.SplitSeq(strings.Join(kubeletFlag(template, "node-labels"), ","), ",") {
		if key, value, ok := strings.Cut(label, "="); ok {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[key] = value
		}
	}
	return labels
}

// podsOf is taintsOf for the number of Pods that a Node takes; empty if the template leaves it to the kubelet.
func podsOf(template *unstructured.Unstructured) string {
	var pods int64
	if !decodeField(template, []string{"kubelet", "config", "maxPods"}, &pods) {
		for _, value := range kubeletFlag(template, "max-pods") { // The last one wins.
			pods, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	if pods <= 0 {
		return ""
	}
	return strconv.FormatInt(pods, 10)
}

// kubeletFlag returns the values of a flag of the kubelet in a KubeadmConfigTemplate.
func kubeletFlag(template *unstructured.Unstructured, name string) (values []string) {
	var args []struct{ Name, Value string }
	decodeField(template, []string{"joinConfiguration", "nodeRegistration", "kubeletExtraArgs"}, &args)
	for _, arg := range args {
		if arg.Name == name {
			values = append(values, arg.Value)
		}
	}
	return values
}

// decodeField decodes a field of spec.template.spec, and reports whether there is one of that type.
func decodeField(template *unstructured.Unstructured, path []string, into any) bool {
	if template == nil {
		return false
	}
	value, found, err := unstructured.NestedFieldNoCopy(template.Object, append([]string{"spec", "template", "spec"}, path...)...)
	if err != nil || !found {
		return false
	}
	text, err := json.Marshal(value)
	return err == nil && json.Unmarshal(text, into) == nil
}

func formatTaints(taints []corev1.Taint) string {
	texts := make([]string, 0, len(taints))
	for _, t := range taints {
		texts = append(texts, t.ToString())
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

func formatLabels(labels map[string]string) string {
	texts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, ",")
}
