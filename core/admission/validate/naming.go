package validate

import (
	"strings"
	texttemplate "text/template"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// maxNameLength lets the name of a Machine serve as a label value and a host name.
	maxNameLength = 63
	// randomLength is the length of what makes the names of Machines differ.
	randomLength = 5
)

// samples stand for what makes the names of Machines differ.
var samples = [2]string{"bcdfg", "hjklm"}

// naming says what is wrong with the template for names of Machines, by making one.
func naming(from clusterv1.MachineNamingSpec, clusterName, setName string) field.ErrorList {
	if from.Template == "" {
		return nil
	}
	wrong := func(because string) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "machineNaming", "template"), from.Template, because)}
	}
	parsed, err := texttemplate.New("name").Option("missingkey=error").Parse(from.Template)
	if err != nil {
		return wrong("is no template: " + err.Error())
	}
	var made [len(samples)]string
	for i, random := range samples {
		name := &strings.Builder{}
		if err := parsed.Execute(name, map[string]any{
			"cluster":    map[string]any{"name": clusterName},
			"machineSet": map[string]any{"name": setName},
			"random":     random,
		}); err != nil {
			return wrong("cannot be filled in: " + err.Error() + "; there are .cluster.name, .machineSet.name and .random")
		}
		made[i] = name.String()
	}
	if made[0] == made[1] {
		return wrong("lacks {{ .random }}, without which all names are alike: append -{{ .random }}")
	}
	name := made[0]
	if len(name) > maxNameLength {
		name = name[:maxNameLength-randomLength] + samples[0]
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return wrong("makes the name " + quote(name) + ", which Kubernetes does not take: " + strings.Join(problems, "; "))
	}
	return nil
}
