package machineset

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	"millwright.dev/contracts/template"
)

// Replicas is how many Machines a set shall have. An empty spec.replicas means what admission would have
// filled in: the lower limit of the cluster autoscaler where the set has both of its annotations, else 1.
func Replicas(replicas *int32, annotations map[string]string) int {
	if replicas != nil {
		return int(*replicas)
	}
	lowest, err := strconv.ParseInt(annotations[clusterv1.AutoscalerMinSizeAnnotation], 10, 32)
	if _, bounded := annotations[clusterv1.AutoscalerMaxSizeAnnotation]; err == nil && bounded && lowest >= 0 {
		return int(lowest)
	}
	return 1
}

// effectiveSelector is the selector of the set; an empty one means the label with the set's name, as
// admission would have filled in.
func effectiveSelector(set *clusterv1.MachineSet) (labels.Selector, error) {
	selector := set.Spec.Selector
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		selector.MatchLabels = map[string]string{clusterv1.MachineSetNameLabel: format.MustFormatValue(set.Name)}
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// problems says what is wrong with a set, each with the field and what to do. Admission refuses such sets
// where it is installed; without it, the set waits for its correction.
func problems(set *clusterv1.MachineSet) []string {
	var found []string
	add := func(wrong string, args ...any) { found = append(found, fmt.Sprintf(wrong, args...)) }
	if selector, err := effectiveSelector(set); err != nil {
		add("spec.selector is invalid: %v", err)
	} else if !selector.Matches(labels.Set(machineLabels(set))) {
		add("spec.selector %q does not select the labels in spec.template.metadata.labels: "+
			"its own Machines would be unknown to it; make them agree", selector)
	}
	found = append(found, TemplateProblems(&set.Spec.Template, set.Spec.ClusterName)...)
	if _, err := machineName(set, func(n int) string { return "bcdfg"[:n] }); err != nil {
		add("%v", err)
	}
	return found
}

// TemplateProblems says what is wrong with the template of a MachineSet or MachineDeployment.
func TemplateProblems(from *clusterv1.MachineTemplateSpec, clusterName string) []string {
	var found []string
	add := func(wrong string, args ...any) { found = append(found, fmt.Sprintf(wrong, args...)) }
	spec := &from.Spec
	if spec.ClusterName != "" && spec.ClusterName != clusterName {
		add("spec.template.spec.clusterName %q differs from spec.clusterName %q: set it to the same",
			spec.ClusterName, clusterName)
	}
	if !spec.InfrastructureRef.IsDefined() {
		add("spec.template.spec.infrastructureRef is empty: name an infrastructure machine template")
	} else if _, err := template.KindOf(spec.InfrastructureRef.Kind); err != nil {
		add("spec.template.spec.infrastructureRef.kind: %v", err)
	}
	switch {
	case spec.Bootstrap.ConfigRef.IsDefined():
		if _, err := template.KindOf(spec.Bootstrap.ConfigRef.Kind); err != nil {
			add("spec.template.spec.bootstrap.configRef.kind: %v", err)
		}
	case spec.Bootstrap.DataSecretName == nil:
		add("spec.template.spec.bootstrap is empty: name a bootstrap config template in configRef, or a Secret in dataSecretName")
	}
	return found
}
