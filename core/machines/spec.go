package machines

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/template"
	"millwright.dev/core/admission/defaults"
)

// Replicas is how many Machines a set shall have. An empty spec.replicas means admission's
// default: the lower limit of the cluster autoscaler where the set has both of its annotations, else 1.
func Replicas(replicas *int32, annotations map[string]string) int {
	number, err := defaults.Replicas(replicas, nil, annotations)
	if err != nil {
		return 1
	}
	return int(number)
}

// TemplateErrors lists what is wrong with the template of a MachineSet or MachineDeployment.
func TemplateErrors(from *clusterv1.MachineTemplateSpec, clusterName string) []string {
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
