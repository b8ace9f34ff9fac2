package drain

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	drainBehavior = clusterv1.MachineDrainRuleDrainBehaviorDrain
	skipBehavior  = clusterv1.MachineDrainRuleDrainBehaviorSkip
	waitBehavior  = clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted
)

func newRule(
	name string,
	behaviour clusterv1.MachineDrainRuleDrainBehavior,
	order *int32,
	change ...func(*clusterv1.MachineDrainRuleSpec),
) clusterv1.MachineDrainRule {
	r := clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: name}}
	r.Spec.Drain = clusterv1.MachineDrainRuleDrainConfig{Behavior: behaviour, Order: order}
	for _, c := range change {
		c(&r.Spec)
	}
	return r
}

func withLabel(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// broken is a selector that the API server takes and that means nothing.
func broken() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Resembles", Values: []string{"b"}}}}
}

func pods(selectors ...clusterv1.MachineDrainRulePodSelector) func(*clusterv1.MachineDrainRuleSpec) {
	return func(s *clusterv1.MachineDrainRuleSpec) { s.Pods = selectors }
}

// webAndMore asks for a label in both ways.
func webAndMore() *metav1.LabelSelector {
	s := withLabel("app", "web")
	s.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}
	return s
}

func machines(selectors ...clusterv1.MachineDrainRuleMachineSelector) func(*clusterv1.MachineDrainRuleSpec) {
	return func(s *clusterv1.MachineDrainRuleSpec) { s.Machines = selectors }
}

func appPod(app string) *Pod {
	return simplePod(app, func(p *Pod) { p.Labels = map[string]string{"app": app} })
}

func namespaceLabels(name string) labels.Set {
	return labels.Set{"kubernetes.io/metadata.name": name, "team": "a"}
}

func TestRulesDecide(t *testing.T) {
	forWeb := clusterv1.MachineDrainRulePodSelector{Selector: withLabel("app", "web")}
	inTeamA := clusterv1.MachineDrainRulePodSelector{Selector: withLabel("app", "web"), NamespaceSelector: withLabel("team", "a")}
	inTeamB := clusterv1.MachineDrainRulePodSelector{NamespaceSelector: withLabel("team", "b")}
	tests := map[string]struct {
		rules []clusterv1.MachineDrainRule
		pod   *Pod
		want  Decision
	}{
		"no rules":                              {pod: appPod("web"), want: Decision{Action: Evict}},
		"a rule for all pods":                   {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil)}, pod: appPod("web"), want: Decision{Action: Skip}},
		"an order":                              {rules: []clusterv1.MachineDrainRule{newRule("a", drainBehavior, ptr.To[int32](-3))}, pod: appPod("web"), want: Decision{Evict, -3}},
		"completion in its turn":                {rules: []clusterv1.MachineDrainRule{newRule("a", waitBehavior, ptr.To[int32](7))}, pod: appPod("web"), want: Decision{WaitCompleted, 7}},
		"pods that match":                       {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(forWeb))}, pod: appPod("web"), want: Decision{Action: Skip}},
		"pods that do not":                      {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(forWeb))}, pod: appPod("db"), want: Decision{Action: Evict}},
		"one of several selectors":              {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(inTeamB, forWeb))}, pod: appPod("web"), want: Decision{Action: Skip}},
		"pod and namespace":                     {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(inTeamA))}, pod: appPod("web"), want: Decision{Action: Skip}},
		"another namespace":                     {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(inTeamB))}, pod: appPod("web"), want: Decision{Action: Evict}},
		"the first by name":                     {rules: []clusterv1.MachineDrainRule{newRule("b", skipBehavior, nil), newRule("a", waitBehavior, nil)}, pod: appPod("web"), want: Decision{Action: WaitCompleted}},
		"the first that matches":                {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(inTeamB)), newRule("b", waitBehavior, nil)}, pod: appPod("web"), want: Decision{Action: WaitCompleted}},
		"a label and an expression, both count": {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(clusterv1.MachineDrainRulePodSelector{Selector: webAndMore()}))}, pod: appPod("db"), want: Decision{Action: Evict}},
		"an empty selector matches all":         {rules: []clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(clusterv1.MachineDrainRulePodSelector{Selector: &metav1.LabelSelector{}}))}, pod: appPod("web"), want: Decision{Action: Skip}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rules, invalid := CompileRules(test.rules, nil, nil)
			g.Expect(invalid).To(BeEmpty())
			g.Expect(rules.decide(test.pod, namespaceLabels)).To(Equal(test.want))
		})
	}
}

func TestCompileRules_Machines(t *testing.T) {
	linux := clusterv1.MachineDrainRuleMachineSelector{Selector: withLabel("os", "linux")}
	inProduction := clusterv1.MachineDrainRuleMachineSelector{
		Selector:        withLabel("os", "linux"),
		ClusterSelector: withLabel("stage", "production"),
	}
	tests := map[string]struct {
		selectors []clusterv1.MachineDrainRuleMachineSelector
		cluster   string
		want      bool
	}{
		"no selectors":           {want: true},
		"the Machine's labels":   {selectors: []clusterv1.MachineDrainRuleMachineSelector{linux}, want: true},
		"other labels":           {selectors: []clusterv1.MachineDrainRuleMachineSelector{{Selector: withLabel("os", "other")}}},
		"Machine and Cluster":    {selectors: []clusterv1.MachineDrainRuleMachineSelector{inProduction}, cluster: "production", want: true},
		"another Cluster":        {selectors: []clusterv1.MachineDrainRuleMachineSelector{inProduction}, cluster: "test"},
		"one of several":         {selectors: []clusterv1.MachineDrainRuleMachineSelector{inProduction, linux}, cluster: "test", want: true},
		"the first of several":   {selectors: []clusterv1.MachineDrainRuleMachineSelector{linux, inProduction}, cluster: "test", want: true},
		"an empty selector, all": {selectors: []clusterv1.MachineDrainRuleMachineSelector{{Selector: &metav1.LabelSelector{}}}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			rules, invalid := CompileRules([]clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, machines(test.selectors...))},
				map[string]string{"os": "linux"}, map[string]string{"stage": test.cluster})
			g.Expect(invalid).To(BeEmpty())
			g.Expect(rules.decide(appPod("web"), namespaceLabels).Action == Skip).To(Equal(test.want))
		})
	}
}

// TestCompileRules_InvalidRule_AffectsOnlyItself: upstream stops every drain of the namespace.
func TestCompileRules_InvalidRule_AffectsOnlyItself(t *testing.T) {
	other := clusterv1.MachineDrainRuleMachineSelector{Selector: withLabel("os", "other")}
	tests := map[string]struct {
		rule  clusterv1.MachineDrainRule
		field string
	}{
		"a pod selector":       {newRule("a", skipBehavior, nil, pods(clusterv1.MachineDrainRulePodSelector{Selector: broken()})), "spec.pods[0].selector"},
		"a namespace selector": {newRule("a", skipBehavior, nil, pods(clusterv1.MachineDrainRulePodSelector{Selector: withLabel("a", "b")}, clusterv1.MachineDrainRulePodSelector{NamespaceSelector: broken()})), "spec.pods[1].namespaceSelector"},
		"a machine selector":   {newRule("a", skipBehavior, nil, machines(other, clusterv1.MachineDrainRuleMachineSelector{Selector: broken()})), "spec.machines[1].selector"},
		"a cluster selector":   {newRule("a", skipBehavior, nil, machines(clusterv1.MachineDrainRuleMachineSelector{ClusterSelector: broken()})), "spec.machines[0].clusterSelector"},
		"a behaviour":          {newRule("a", "Dance", nil), "spec.drain.behavior"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			valid := newRule("b", waitBehavior, nil)
			rules, invalid := CompileRules([]clusterv1.MachineDrainRule{test.rule, valid}, nil, nil)
			g.Expect(invalid).To(HaveLen(1))
			g.Expect(invalid[0].Err.Field).To(Equal(test.field))
			g.Expect(invalid[0].String()).To(HavePrefix("MachineDrainRule machines/a is invalid and has no effect: " + test.field + ": "))
			g.Expect(rules.decide(appPod("web"), namespaceLabels)).To(Equal(Decision{Action: WaitCompleted}), "the other rule counts")
		})
	}
	t.Run("about other Machines", func(t *testing.T) {
		rule := newRule("a", skipBehavior, nil, machines(other), pods(clusterv1.MachineDrainRulePodSelector{Selector: broken()}))
		_, invalid := CompileRules([]clusterv1.MachineDrainRule{rule}, nil, nil)
		NewWithT(t).Expect(invalid).To(BeEmpty())
	})
}

func TestCompileRules_Namespaces(t *testing.T) {
	g := NewWithT(t)
	without, _ := CompileRules(
		[]clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(clusterv1.MachineDrainRulePodSelector{Selector: withLabel("a", "b")}))},
		nil,
		nil,
	)
	g.Expect(without.namespaces).To(BeFalse())
	with, _ := CompileRules(
		[]clusterv1.MachineDrainRule{
			newRule("a", skipBehavior, nil, pods(clusterv1.MachineDrainRulePodSelector{NamespaceSelector: withLabel("a", "b")})),
		},
		nil,
		nil,
	)
	g.Expect(with.namespaces).To(BeTrue())
	both, _ := CompileRules([]clusterv1.MachineDrainRule{newRule("a", skipBehavior, nil, pods(
		clusterv1.MachineDrainRulePodSelector{
			NamespaceSelector: withLabel("a", "b"),
		},
		clusterv1.MachineDrainRulePodSelector{Selector: withLabel("a", "b")},
	))}, nil, nil)
	g.Expect(both.namespaces).To(BeTrue())
	empty, _ := CompileRules(
		[]clusterv1.MachineDrainRule{
			newRule("a", skipBehavior, nil, pods(clusterv1.MachineDrainRulePodSelector{NamespaceSelector: &metav1.LabelSelector{}})),
		},
		nil,
		nil,
	)
	g.Expect(empty.namespaces).To(BeFalse(), "an empty selector matches each without a look")
}
