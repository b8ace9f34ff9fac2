package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/naming"
)

var selectorPath = field.NewPath("spec", "selector")

// selector rejects a selector that is invalid, that does not select the labels of the template, or that does not select what the
// controller creates: the controller overrides some labels of the template. children are the labels of what it creates, by kind.
func selector(from *metav1.LabelSelector, templateLabels map[string]string, children ...child) field.ErrorList {
	matcher, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		return field.ErrorList{field.Invalid(selectorPath, from.String(), "is not a selector: "+err.Error())}
	}
	if !matcher.Matches(labels.Set(templateLabels)) {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), labels.FormatLabels(templateLabels),
			"do not match spec.selector "+quote(matcher.String())+", so the controller would not find its own Machines: make them agree")}
	}
	for _, child := range children {
		if wrong := child.unselected(matcher); wrong != "" {
			return field.ErrorList{field.Invalid(selectorPath, matcher.String(), wrong)}
		}
	}
	return nil
}

// child is what a controller creates.
type child struct {
	kind   string
	labels map[string]string
	// parent is the kind of the object with the selector.
	parent string
}

// unselected describes why a selector does not match a child, and what to do; "" when it does.
func (c *child) unselected(matcher labels.Selector) string {
	requirements, selectable := matcher.Requirements()
	if !selectable {
		return "selects nothing: name labels that the template has"
	}
	for _, requirement := range requirements {
		if requirement.Matches(labels.Set(c.labels)) {
			continue
		}
		key := requirement.Key()
		value, remedy := quote(c.labels[key]), "use that value, or remove the label, in spec.selector and in spec.template.metadata.labels"
		switch _, has := c.labels[key]; {
		case !has:
			return fmt.Sprintf("requires %q, but a %s of this %s has no label %s, so the controller would not find it: remove the requirement",
				requirement.String(), c.kind, c.parent, key)
		case c.labels[key] == naming.GeneratedValue:
			value, remedy = "a generated value", "remove the label from spec.selector and from spec.template.metadata.labels"
		}
		return fmt.Sprintf("requires %q, but a %s of this %s gets %s as its label %s. The controller would not find it, and would create others "+
			"without end: %s", requirement.String(), c.kind, c.parent, value, key, remedy)
	}
	return ""
}

// sameSetSelector rejects a changed selector. One that could never match may be corrected. An object that was stored without the
// defaults of admission gets them with its next update.
func sameSetSelector(set, old *clusterv1.MachineSet) field.ErrorList {
	before := old.DeepCopy()
	defaults.MachineSet(before, nil)
	if set.Spec.ClusterName != old.Spec.ClusterName || len(setSelector(before)) > 0 {
		return nil
	}
	return immutableSelector("MachineSet", &set.Spec.Selector, &before.Spec.Selector)
}

// sameDeploymentSelector is sameSetSelector for a MachineDeployment.
func sameDeploymentSelector(deployment, old *clusterv1.MachineDeployment) field.ErrorList {
	before := old.DeepCopy()
	defaults.MachineDeployment(before, nil)
	if deployment.Spec.ClusterName != old.Spec.ClusterName || len(deploymentSelector(before)) > 0 {
		return nil
	}
	return immutableSelector("MachineDeployment", &deployment.Spec.Selector, &before.Spec.Selector)
}

// immutableSelector rejects a changed selector, as apps/v1 does for Deployments: what the former one selects would lose its owner.
func immutableSelector(kind string, now, before *metav1.LabelSelector) field.ErrorList {
	if selectorText(now) == selectorText(before) {
		return nil
	}
	return field.ErrorList{field.Invalid(selectorPath, metav1.FormatLabelSelector(now), fmt.Sprintf(
		"is immutable, it was %q: what that selects would lose its owner and stay. Keep the selector and add labels to "+
			"spec.template.metadata.labels alone, or create a %s with another name and delete this one",
		metav1.FormatLabelSelector(before), kind))}
}

// selectorText is the same for selectors that say the same, in whatever order.
func selectorText(from *metav1.LabelSelector) string {
	matcher, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		return from.String()
	}
	requirements, _ := matcher.Requirements()
	texts := map[string]bool{}
	for _, requirement := range requirements {
		// The requirement a in (b) is the same as a=b.
		values := slices.Sorted(maps.Keys(requirement.Values()))
		operator := strings.NewReplacer("==", "in", "!=", "notin").Replace(string(requirement.Operator()))
		if operator == "=" {
			operator = "in"
		}
		texts[fmt.Sprint(requirement.Key(), " ", operator, " ", values)] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(texts)), ";")
}

// setSelector validates the selector of a MachineSet.
func setSelector(set *clusterv1.MachineSet) field.ErrorList {
	return selector(&set.Spec.Selector, set.Spec.Template.Labels,
		child{kind: "Machine", labels: naming.MachineLabels(set), parent: "MachineSet"})
}

// deploymentSelector validates the selector of a MachineDeployment, which has to match its sets and their Machines.
func deploymentSelector(deployment *clusterv1.MachineDeployment) field.ErrorList {
	sets := naming.SetLabels(deployment)
	sets[clusterv1.MachineDeploymentUniqueLabel] = naming.GeneratedValue
	return selector(&deployment.Spec.Selector, deployment.Spec.Template.Labels,
		child{kind: "MachineSet", labels: sets, parent: "MachineDeployment"},
		child{kind: "Machine", labels: naming.DeploymentMachineLabels(deployment), parent: "MachineDeployment"})
}
