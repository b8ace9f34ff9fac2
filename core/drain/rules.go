package drain

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Rules are the MachineDrainRules that apply to one Machine, ready to be asked about pods. Nil are no rules.
type Rules struct {
	rules []rule
	// namespaces means that some rule looks at the labels of namespaces.
	namespaces bool
}

// rule is one MachineDrainRule. A pod matches when one of the selectors does; no selectors match every pod.
type rule struct {
	decision  Decision
	selectors []podSelector
}

// podSelector matches pods by their own labels and those of their namespace; nil matches all.
type podSelector struct{ pod, namespace labels.Selector }

// InvalidRule is a MachineDrainRule that cannot be understood, and is treated as if it were not there.
type InvalidRule struct {
	// Rule is the MachineDrainRule.
	Rule *clusterv1.MachineDrainRule
	// Err names the field that is wrong, and what is wrong with it.
	Err *field.Error
}

// CompileRules chooses from all MachineDrainRules of a Machine's namespace those that apply to a Machine with
// these labels in a Cluster with those labels, in the order of their names: about a pod the first that matches it
// decides. The rule's order counts for the behaviour WaitCompleted too.
//
// A rule that is invalid is left out and returned, without effect on the others, unless it is certain that it
// would not apply to this Machine anyway.
func CompileRules(all []clusterv1.MachineDrainRule, machine, cluster map[string]string) (*Rules, []InvalidRule) {
	sorted := make([]*clusterv1.MachineDrainRule, 0, len(all))
	for i := range all {
		sorted = append(sorted, &all[i])
	}
	slices.SortFunc(sorted, func(a, b *clusterv1.MachineDrainRule) int { return cmp.Compare(a.Name, b.Name) })
	result := &Rules{}
	var invalid []InvalidRule
	for _, r := range sorted {
		applies, err := appliesTo(r, machine, cluster)
		if err == nil && !applies {
			continue
		}
		var compiled rule
		if err == nil {
			compiled, err = compile(r)
		}
		if err != nil {
			invalid = append(invalid, InvalidRule{Rule: r, Err: err})
			continue
		}
		result.rules = append(result.rules, compiled)
		for _, s := range compiled.selectors {
			result.namespaces = result.namespaces || s.namespace != nil
		}
	}
	return result, invalid
}

// appliesTo reports whether a rule is about a Machine.
func appliesTo(r *clusterv1.MachineDrainRule, machine, cluster labels.Set) (bool, *field.Error) {
	applies := len(r.Spec.Machines) == 0
	for i := range r.Spec.Machines {
		at := field.NewPath("spec", "machines").Index(i)
		ofMachine, err := selector(r.Spec.Machines[i].Selector, at.Child("selector"))
		if err != nil {
			return false, err
		}
		ofCluster, err := selector(r.Spec.Machines[i].ClusterSelector, at.Child("clusterSelector"))
		if err != nil {
			return false, err
		}
		applies = applies || matches(ofMachine, machine) && matches(ofCluster, cluster)
	}
	return applies, nil
}

func compile(r *clusterv1.MachineDrainRule) (rule, *field.Error) {
	compiled := rule{}
	switch behaviour := r.Spec.Drain.Behavior; behaviour {
	case clusterv1.MachineDrainRuleDrainBehaviorDrain:
		compiled.decision.Action = Evict
	case clusterv1.MachineDrainRuleDrainBehaviorSkip:
		compiled.decision.Action = Skip
	case clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted:
		compiled.decision.Action = WaitCompleted
	default:
		return rule{}, field.Invalid(field.NewPath("spec", "drain", "behavior"), behaviour, "is none of Drain, Skip, WaitCompleted")
	}
	if r.Spec.Drain.Order != nil {
		compiled.decision.Order = *r.Spec.Drain.Order
	}
	for i := range r.Spec.Pods {
		at := field.NewPath("spec", "pods").Index(i)
		ofPod, err := selector(r.Spec.Pods[i].Selector, at.Child("selector"))
		if err != nil {
			return rule{}, err
		}
		ofNamespace, err := selector(r.Spec.Pods[i].NamespaceSelector, at.Child("namespaceSelector"))
		if err != nil {
			return rule{}, err
		}
		compiled.selectors = append(compiled.selectors, podSelector{ofPod, ofNamespace})
	}
	return compiled, nil
}

// selector compiles a selector; one that is not set or empty matches everything, and is nil.
func selector(s *metav1.LabelSelector, at *field.Path) (labels.Selector, *field.Error) {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, field.Invalid(at, metav1.FormatLabelSelector(s), err.Error())
	}
	return compiled, nil
}

func matches(s labels.Selector, set labels.Set) bool { return s == nil || s.Matches(set) }

// decide returns the decision of the first rule that matches a pod. Pods without a rule are evicted.
func (r *Rules) decide(pod *Pod, namespaces func(string) labels.Set) Decision {
	if r != nil {
		for i := range r.rules {
			if r.rules[i].matches(pod, namespaces) {
				return r.rules[i].decision
			}
		}
	}
	return Decision{Action: Evict}
}

func (r *rule) matches(pod *Pod, namespaces func(string) labels.Set) bool {
	return len(r.selectors) == 0 || slices.ContainsFunc(r.selectors, func(s podSelector) bool {
		return matches(s.pod, pod.Labels) && (s.namespace == nil || s.namespace.Matches(namespaces(pod.Key.Namespace)))
	})
}

// String names the rule and the field, and what is wrong.
func (i *InvalidRule) String() string {
	return "MachineDrainRule " + i.Rule.Namespace + "/" + i.Rule.Name + " is invalid and has no effect: " + i.Err.Error()
}
