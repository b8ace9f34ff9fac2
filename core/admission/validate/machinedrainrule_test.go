package validate

import (
	"testing"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachineDrainRule(t *testing.T) {
	drain := func(behavior clusterv1.MachineDrainRuleDrainBehavior, order *int32) clusterv1.MachineDrainRuleSpec {
		return clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: behavior, Order: order}}
	}
	tests := map[string]struct {
		spec clusterv1.MachineDrainRuleSpec
		want string
	}{
		"drain in order":         {spec: drain(clusterv1.MachineDrainRuleDrainBehaviorDrain, ptr.To[int32](1))},
		"skip":                   {spec: drain(clusterv1.MachineDrainRuleDrainBehaviorSkip, nil)},
		"skip in order":          {spec: drain(clusterv1.MachineDrainRuleDrainBehaviorSkip, ptr.To[int32](1)), want: "spec.drain.order: Invalid value: 1: has no meaning with the behavior Skip"},
		"wait in order":          {spec: drain(clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted, ptr.To[int32](7))},
		"selector of Machines":   {spec: clusterv1.MachineDrainRuleSpec{Machines: []clusterv1.MachineDrainRuleMachineSelector{{}, {Selector: &badSelector}}}, want: "spec.machines[1].selector: Invalid value"},
		"selector of Clusters":   {spec: clusterv1.MachineDrainRuleSpec{Machines: []clusterv1.MachineDrainRuleMachineSelector{{ClusterSelector: &badSelector}}}, want: "spec.machines[0].clusterSelector: Invalid value"},
		"selector of Pods":       {spec: clusterv1.MachineDrainRuleSpec{Pods: []clusterv1.MachineDrainRulePodSelector{{Selector: &badSelector}}}, want: "spec.pods[0].selector: Invalid value"},
		"selector of Namespaces": {spec: clusterv1.MachineDrainRuleSpec{Pods: []clusterv1.MachineDrainRulePodSelector{{NamespaceSelector: &badSelector}}}, want: "spec.pods[0].namespaceSelector: Invalid value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rule := &clusterv1.MachineDrainRule{Spec: test.spec}
			expect(t, MachineDrainRule(rule, nil), test.want)
			expect(t, MachineDrainRule(rule, rule), "")
		})
	}
}
