package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/features"
)

// Keys and prefixes of taints that others own.
const (
	controlPlaneTaint  = "node-role.kubernetes.io/control-plane"
	masterTaint        = "node-role.kubernetes.io/master"
	outOfServiceTaint  = "node.kubernetes.io/out-of-service"
	nodePrefix         = "node.kubernetes.io/"
	cloudProviderTaint = "node.cloudprovider.kubernetes.io/"
)

// taints refuses taints that may not be set on a Machine, or in the template of Machines that are no control plane.
func taints(path *field.Path, list []clusterv1.MachineTaint, controlPlane bool) field.ErrorList {
	var found field.ErrorList
	enabled := features.TaintPropagation()
	if !enabled && len(list) > 0 {
		found = append(found, field.Forbidden(path, "the feature gate MachineTaintPropagation is off: enable it, or remove "+describe(list)))
	}
	for i, taint := range list {
		key := path.Index(i).Child("key")
		if because := taintOwner(taint.Key); because != "" {
			found = append(found, field.Invalid(key, taint.Key, because))
		}
		if enabled && !controlPlane && taint.Key == controlPlaneTaint {
			found = append(found, field.Invalid(key, taint.Key, "marks the control plane, and this is a worker: remove it"))
		}
		for _, because := range content.IsLabelKey(taint.Key) {
			found = append(found, field.Invalid(key, taint.Key, because))
		}
	}
	return found
}

// describe lists taints as kubectl does.
func describe(list []clusterv1.MachineTaint) string {
	var texts []string
	for _, taint := range list {
		texts = append(texts, taint.Key+"="+taint.Value+":"+string(taint.Effect))
	}
	return strings.Join(texts, ", ")
}

// taintOwner names the owner of a taint, empty where it has none.
func taintOwner(key string) string {
	switch {
	case key == clusterv1.NodeUninitializedTaint.Key, key == clusterv1.NodeOutdatedRevisionTaint.Key:
		return "is set and removed by Cluster API itself: remove it"
	case key == outOfServiceTaint:
		return ""
	case strings.HasPrefix(key, nodePrefix):
		return "belongs to Kubernetes' node lifecycle, as all of " + nodePrefix + " but " + outOfServiceTaint + ": remove it"
	case strings.HasPrefix(key, cloudProviderTaint):
		return "belongs to the cloud controller manager and the kubelet, as all of " + cloudProviderTaint + ": remove it"
	case key == masterTaint:
		return "is deprecated since Kubernetes 1.24: use " + controlPlaneTaint + " on control plane Machines, else remove it"
	}
	return ""
}
