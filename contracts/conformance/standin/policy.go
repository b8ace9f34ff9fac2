package standin

import (
	"cmp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/rules"
)

// Policy returns a policy that refuses changes of a template kind in a namespace, or in all if it is empty. The API server needs a moment
// to apply it. There is no policy if the rule that changes are refused is among the broken ones.
func Policy(namespace, kind string, switches Switches) []client.Object {
	ids := [3]rules.ID{"IT-004", "IT-005", "IT-006"}
	if kind == "StandInConfigTemplate" {
		ids = [3]rules.ID{"BT-004", "BT-005", "BT-006"}
	}
	annotated := "'" + clusterv1.TopologyDryRunAnnotation + "' in object.metadata.?annotations.orValue({})"
	expression := "object.spec == oldObject.spec"
	switch {
	case switches.breaks(ids[0]):
		return nil
	case switches.breaks(ids[1]):
	case switches.breaks(ids[2]):
		expression += " || " + annotated
	default:
		expression += " || request.?dryRun.orValue(false) && " + annotated
	}
	meta := metav1.ObjectMeta{Name: cmp.Or(namespace, "everywhere") + "-" + strings.ToLower(kind)}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{Group}, APIVersions: []string{"*"}, Resources: []string{strings.ToLower(kind) + "s"},
			},
		}}},
	}
	if namespace != "" {
		only := map[string]string{corev1.LabelMetadataName: namespace}
		policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: only}
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{
		{Expression: expression, Message: kind + " cannot be changed: create a new one"},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}
	binding.Spec.PolicyName = meta.Name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	return []client.Object{policy, binding}
}
