package validate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineDrainRule validates a MachineDrainRule, and its change from the old one.
func MachineDrainRule(rule, old *clusterv1.MachineDrainRule) field.ErrorList {
	found := drainRuleAlone(rule)
	if old != nil {
		found = ratchet(found, drainRuleAlone(old))
	}
	return found
}

func drainRuleAlone(rule *clusterv1.MachineDrainRule) field.ErrorList {
	path := field.NewPath("spec")
	var found field.ErrorList
	// Upstream refuses an order for WaitCompleted as well, and takes it to be 0; the drain here waits in order.
	if order := rule.Spec.Drain.Order; order != nil && rule.Spec.Drain.Behavior == clusterv1.MachineDrainRuleDrainBehaviorSkip {
		found = append(found, field.Invalid(path.Child("drain", "order"), *order,
			"has no meaning with the behavior Skip: remove it, or use the behavior Drain or WaitCompleted"))
	}
	for i, machines := range rule.Spec.Machines {
		found = append(found, drainSelector(path.Child("machines").Index(i).Child("selector"), machines.Selector)...)
		found = append(found, drainSelector(path.Child("machines").Index(i).Child("clusterSelector"), machines.ClusterSelector)...)
	}
	for i, pods := range rule.Spec.Pods {
		found = append(found, drainSelector(path.Child("pods").Index(i).Child("selector"), pods.Selector)...)
		found = append(found, drainSelector(path.Child("pods").Index(i).Child("namespaceSelector"), pods.NamespaceSelector)...)
	}
	return found
}

// drainSelector validates a selector, which may be empty.
func drainSelector(path *field.Path, from *metav1.LabelSelector) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector(from); err != nil {
		return field.ErrorList{field.Invalid(path, from.String(), "is not a selector: "+err.Error())}
	}
	return nil
}
