package machineset

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/naming"
)

// defaultNaming is the name of a Machine without spec.machineNaming.
const defaultNaming = "{{ .machineSet.name }}-{{ .random }}"

// machineName generates a name for a new Machine, which its bootstrap config and infrastructure machine share. The
// rules are those of spec.machineNaming.template; a name that is too long is cut, so that its end stays random. random
// is the value of {{ .random }}.
func machineName(set *clusterv1.MachineSet, random string) (string, error) {
	parsed, err := naming.Parse(cmp.Or(set.Spec.MachineNaming.Template, defaultNaming))
	if err != nil {
		return "", fmt.Errorf("spec.machineNaming.template is not a valid template: %w", err)
	}
	name, err := parsed.Make(set.Spec.ClusterName, set.Name, random)
	if err != nil {
		return "", fmt.Errorf("spec.machineNaming.template cannot be executed: %w", err)
	}
	if !strings.Contains(name, random) {
		return "", fmt.Errorf("spec.machineNaming.template lacks {{ .random }}, without which all names are alike")
	}
	name = naming.Cut(name, random)
	if nameErrors := validation.IsDNS1123Subdomain(name); len(nameErrors) > 0 {
		return "", fmt.Errorf("spec.machineNaming.template makes the name %q: %s", name, strings.Join(nameErrors, "; "))
	}
	return name, nil
}
