package validate

import (
	"cmp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/defaults"
)

// selecting gives an object a selector for labels that its template has as well, as a copied object has them.
func selecting(selector *metav1.LabelSelector, template *clusterv1.MachineTemplateSpec, labels map[string]string) {
	selector.MatchLabels, template.Labels = labels, map[string]string{}
	for key, value := range labels {
		template.Labels[key] = value
	}
}

func requiring(key string, operator metav1.LabelSelectorOperator, values ...string) []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}
}

var long = strings.Repeat("s", 70)

// A MachineSet whose own Machines do not match its selector would create Machines without end. So it is rejected, whatever label of
// its Machines the controller overrides.
func TestValidateMachineSet_CAPI12156_CopiedSelector_IsRejected(t *testing.T) {
	labelled := func(labels map[string]string, change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
		set := aSet(func(s *clusterv1.MachineSet) { selecting(&s.Spec.Selector, &s.Spec.Template, labels) })
		for _, c := range change {
			c(set)
		}
		return set
	}
	expressions := func(requirements ...metav1.LabelSelectorRequirement) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) {
			s.Spec.Selector = metav1.LabelSelector{MatchExpressions: requirements}
		}
	}
	const setName, deploymentName = clusterv1.MachineSetNameLabel, clusterv1.MachineDeploymentNameLabel
	of := func(deployment string) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) { s.Labels = map[string]string{deploymentName: deployment} }
	}
	rejected := `spec.selector: Invalid value: `
	for name, test := range map[string]struct {
		set  *clusterv1.MachineSet
		want string
	}{
		"own name":                        {set: labelled(map[string]string{setName: "s"})},
		"name of another":                 {set: labelled(map[string]string{setName: "a"}), want: rejected + `"cluster.x-k8s.io/set-name=a"`},
		"name of another among others":    {set: labelled(map[string]string{"pool": "x", setName: "a"}), want: rejected},
		"Cluster":                         {set: labelled(map[string]string{clusterv1.ClusterNameLabel: "c"})},
		"other Cluster":                   {set: labelled(map[string]string{clusterv1.ClusterNameLabel: "d"}), want: rejected},
		"deployment":                      {set: labelled(map[string]string{deploymentName: "d"}, of("d"))},
		"other deployment":                {set: labelled(map[string]string{deploymentName: "e"}, of("d")), want: rejected},
		"deployment that it has not":      {set: labelled(map[string]string{deploymentName: "e"})},
		"hash of the template":            {set: labelled(map[string]string{clusterv1.MachineDeploymentUniqueLabel: "1-x"})},
		"expression with the own name":    {set: labelled(map[string]string{setName: "s"}, expressions(requiring(setName, "In", "s", "a")...))},
		"expression with another name":    {set: labelled(map[string]string{setName: "a"}, expressions(requiring(setName, "In", "a")...)), want: rejected},
		"expression without the own name": {set: labelled(map[string]string{"a": "b"}, expressions(requiring(setName, "NotIn", "s")...)), want: rejected},
		"expression without another name": {set: labelled(map[string]string{"a": "b"}, expressions(requiring(setName, "NotIn", "a")...))},
		"any set":                         {set: labelled(map[string]string{setName: "a"}, expressions(requiring(setName, "Exists")...))},
		"no set":                          {set: labelled(map[string]string{"a": "b"}, expressions(requiring(setName, "DoesNotExist")...)), want: rejected},
		"no Cluster":                      {set: labelled(map[string]string{"a": "b"}, expressions(requiring(clusterv1.ClusterNameLabel, "DoesNotExist")...)), want: rejected},
		"no deployment":                   {set: labelled(map[string]string{"a": "b"}, expressions(requiring(deploymentName, "DoesNotExist")...), of("d")), want: rejected},
		"generated name": {set: labelled(map[string]string{setName: "s"}, func(s *clusterv1.MachineSet) {
			s.Name, s.GenerateName = "", "s-"
		}), want: rejected},
		"name that is hashed": {set: labelled(map[string]string{}, func(s *clusterv1.MachineSet) {
			s.Name = long
			defaults.MachineSet(s, nil)
		})},
		"name that is cut": {set: labelled(map[string]string{setName: long[:63]}, func(s *clusterv1.MachineSet) { s.Name = long }), want: rejected},
	} {
		t.Run(name, func(t *testing.T) { expect(t, MachineSet(test.set, nil), test.want) })
	}
}

// The names of a MachineDeployment's sets and their hashes are generated: no selector can ask for them.
func TestValidateMachineDeployment_Outscale543_SelectorOfASet_IsRejected(t *testing.T) {
	labelled := func(labels map[string]string, requirements ...metav1.LabelSelectorRequirement) *clusterv1.MachineDeployment {
		return aDeployment(func(d *clusterv1.MachineDeployment) {
			selecting(&d.Spec.Selector, &d.Spec.Template, labels)
			if len(requirements) > 0 {
				d.Spec.Selector = metav1.LabelSelector{MatchExpressions: requirements}
			}
		})
	}
	rejected := `spec.selector: Invalid value: `
	for name, test := range map[string]struct {
		deployment *clusterv1.MachineDeployment
		want       string
	}{
		"own name":           {deployment: labelled(map[string]string{clusterv1.MachineDeploymentNameLabel: "d", clusterv1.ClusterNameLabel: "c"})},
		"name of a set":      {deployment: labelled(map[string]string{clusterv1.MachineSetNameLabel: "a"}), want: rejected},
		"hash of a set":      {deployment: labelled(map[string]string{clusterv1.MachineDeploymentUniqueLabel: "1-x"}), want: rejected},
		"another deployment": {deployment: labelled(map[string]string{clusterv1.MachineDeploymentNameLabel: "e"}), want: rejected},
		"another Cluster":    {deployment: labelled(map[string]string{clusterv1.ClusterNameLabel: "d"}), want: rejected},
		"sets by expression": {deployment: labelled(map[string]string{clusterv1.MachineSetNameLabel: "a"},
			requiring(clusterv1.MachineSetNameLabel, "In", "a", "b")...), want: rejected},
		"not a set":         {deployment: labelled(map[string]string{"a": "b"}, requiring(clusterv1.MachineSetNameLabel, "DoesNotExist")...), want: rejected},
		"no hash":           {deployment: labelled(map[string]string{"a": "b"}, requiring(clusterv1.MachineDeploymentUniqueLabel, "DoesNotExist")...), want: rejected},
		"not another set":   {deployment: labelled(map[string]string{"a": "b"}, requiring(clusterv1.MachineSetNameLabel, "NotIn", "a")...)},
		"of any deployment": {deployment: labelled(map[string]string{clusterv1.MachineDeploymentNameLabel: "d"}, requiring(clusterv1.MachineDeploymentNameLabel, "Exists")...)},
	} {
		t.Run(name, func(t *testing.T) { expect(t, MachineDeployment(test.deployment, nil), test.want) })
	}
}

// A changed selector would abandon a fleet, so it is rejected, as apps/v1 does. The same in other words is no change.
func TestValidateSelector_CAPI13982_Changed_IsRejected(t *testing.T) {
	changed := `spec.selector: Invalid value: `
	for name, test := range map[string]struct {
		before, now metav1.LabelSelector
		want        string
	}{
		"same":            {before: byLabels("a", "b"), now: byLabels("a", "b")},
		"common label":    {before: byLabels("a", "b"), now: byLabels("a", "b", "team", "x"), want: changed},
		"label less":      {before: byLabels("a", "b", "team", "x"), now: byLabels("a", "b"), want: changed},
		"other value":     {before: byLabels("a", "b"), now: byLabels("a", "c"), want: changed},
		"as expression":   {before: byLabels("a", "b"), now: metav1.LabelSelector{MatchExpressions: requiring("a", "In", "b")}},
		"other operator":  {before: byLabels("a", "b"), now: metav1.LabelSelector{MatchExpressions: requiring("a", "Exists")}, want: changed},
		"order of values": {before: metav1.LabelSelector{MatchExpressions: requiring("a", "In", "b", "c")}, now: metav1.LabelSelector{MatchExpressions: requiring("a", "In", "c", "b")}},
	} {
		t.Run(name, func(t *testing.T) {
			labels := func(selector metav1.LabelSelector) map[string]string {
				return map[string]string{"a": cmp.Or(selector.MatchLabels["a"], "b"), "team": "x"}
			}
			set := func(selector metav1.LabelSelector) *clusterv1.MachineSet {
				return aSet(func(s *clusterv1.MachineSet) {
					s.Spec.Selector, s.Spec.Template.Labels = *selector.DeepCopy(), labels(selector)
				})
			}
			deployment := func(selector metav1.LabelSelector) *clusterv1.MachineDeployment {
				return aDeployment(func(d *clusterv1.MachineDeployment) {
					d.Spec.Selector, d.Spec.Template.Labels = *selector.DeepCopy(), labels(selector)
					defaults.MachineDeployment(d, nil)
				})
			}
			expect(t, MachineSet(set(test.now), set(test.before)), test.want)
			expect(t, MachineDeployment(deployment(test.now), deployment(test.before)), test.want)
		})
	}
}

// A deployment that was stored without the defaults of admission gets the label of the Cluster with the next update.
func TestValidateSelector_DefaultsOfAdmission_AreNoChange(t *testing.T) {
	g := NewWithT(t)
	for _, before := range []metav1.LabelSelector{{}, byLabels("a", "b")} {
		old := aDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Selector = before })
		now := old.DeepCopy()
		defaults.MachineDeployment(now, old)
		g.Expect(MachineDeployment(now, old)).To(BeEmpty())
		oldSet := aSet(func(s *clusterv1.MachineSet) { s.Spec.Selector = before })
		set := oldSet.DeepCopy()
		defaults.MachineSet(set, oldSet)
		g.Expect(MachineSet(set, oldSet)).To(BeEmpty())
	}
}

func byLabels(pairs ...string) metav1.LabelSelector {
	labels := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return metav1.LabelSelector{MatchLabels: labels}
}
