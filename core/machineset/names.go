package machineset

import (
	"fmt"
	"strings"
	"text/template"

	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// defaultNaming is the name of a Machine where spec.machineNaming says nothing.
	defaultNaming = "{{ .machineSet.name }}-{{ .random }}"
	// maxNameLength lets the name serve as a label value and a host name.
	maxNameLength = 63
	// randomLength is the length of {{ .random }}: the alphabet has 27 characters, so one name in 14 million
	// collides, and the API server refuses that one.
	randomLength = 5
)

// machineName makes a name for a new Machine, which its bootstrap config and infrastructure machine share. The
// rules are those of spec.machineNaming.template; a name that is too long is cut, so that its end stays random.
func machineName(set *clusterv1.MachineSet, random func(int) string) (string, error) {
	naming := set.Spec.MachineNaming.Template
	if naming == "" {
		naming = defaultNaming
	}
	parsed, err := template.New("name").Option("missingkey=error").Parse(naming)
	if err != nil {
		return "", fmt.Errorf("spec.machineNaming.template is no valid template: %w", err)
	}
	suffix := random(randomLength)
	name := &strings.Builder{}
	if err := parsed.Execute(name, map[string]any{
		"cluster":    map[string]any{"name": set.Spec.ClusterName},
		"machineSet": map[string]any{"name": set.Name},
		"random":     suffix,
	}); err != nil {
		return "", fmt.Errorf("spec.machineNaming.template cannot be filled in: %w", err)
	}
	result := name.String()
	if !strings.Contains(result, suffix) {
		return "", fmt.Errorf("spec.machineNaming.template lacks {{ .random }}, without which all names are alike")
	}
	if len(result) > maxNameLength {
		result = result[:maxNameLength-randomLength] + suffix
	}
	if problems := validation.IsDNS1123Subdomain(result); len(problems) > 0 {
		return "", fmt.Errorf("spec.machineNaming.template makes the name %q: %s", result, strings.Join(problems, "; "))
	}
	return result, nil
}

// randomName is machineName with real randomness.
func randomName(set *clusterv1.MachineSet) (string, error) { return machineName(set, utilrand.String) }
