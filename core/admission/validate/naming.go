package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/naming"
)

// samples stand for what makes the names of Machines differ.
var samples = [2]string{"bcdfg", "hjklm"}

// machineNaming validates the template for names of Machines, by making one.
func machineNaming(from clusterv1.MachineNamingSpec, clusterName, setName string) field.ErrorList {
	if from.Template == "" {
		return nil
	}
	wrong := func(because string) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "machineNaming", "template"), from.Template, because)}
	}
	parsed, err := naming.Parse(from.Template)
	if err != nil {
		return wrong("is not a valid name template: " + err.Error())
	}
	var made [len(samples)]string
	for i, random := range samples {
		if made[i], err = parsed.Make(clusterName, setName, random); err != nil {
			return wrong("cannot be executed: " + err.Error() + "; there are .cluster.name, .machineSet.name and .random")
		}
	}
	if made[0] == made[1] {
		return wrong("lacks {{ .random }}, without which all names are alike: append -{{ .random }}")
	}
	name := naming.Cut(made[0], samples[0])
	if messages := validation.IsDNS1123Subdomain(name); len(messages) > 0 {
		return wrong("makes the name " + quote(name) + ", which is not a valid name: " + strings.Join(messages, "; "))
	}
	return nil
}
