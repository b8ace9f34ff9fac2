package validate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

func TestMachineSet(t *testing.T) {
	gate(t, feature.MachineTaintPropagation, true)
	named := func(template string) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) { s.Spec.MachineNaming.Template = template }
	}
	skipping := func(list string) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) {
			s.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: list}
		}
	}
	limited := func(low, high string) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) {
			s.Spec.Replicas = nil
			s.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: low, clusterv1.AutoscalerMaxSizeAnnotation: high}
		}
	}
	tests := map[string]struct {
		set, old *clusterv1.MachineSet
		want     string
	}{
		"valid":                         {set: aSet()},
		"nothing to boot from":          {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{} }), want: "spec.template.spec.bootstrap: Required value"},
		"selector that is none":         {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Selector = badSelector }), want: `spec.selector: Invalid value: "&LabelSelector{MatchLabels:map[string]string{-bad: x,}`},
		"selector of others":            {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Selector.MatchLabels = map[string]string{"x": "y"} }), want: `spec.template.metadata.labels: Invalid value: "a=b": do not match spec.selector "x=y"`},
		"empty selector: by the name":   {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Selector = metav1.LabelSelector{} })},
		"other Cluster in the template": {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.ClusterName = "d" }), want: `spec.template.spec.clusterName: Invalid value: "d": differs from spec.clusterName: set both to "c"`},
		"moved to another Cluster": {
			set: aSet(), old: aSet(func(s *clusterv1.MachineSet) {
				s.Spec.ClusterName, s.Spec.Template.Spec.ClusterName = "before", "before"
			}),
			want: "spec.clusterName: Forbidden: is immutable",
		},
		"version": {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Version = "v1" }), want: "spec.template.spec.version: Invalid value"},
		"taint": {set: aSet(func(s *clusterv1.MachineSet) {
			s.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: controlPlaneTaint}}
		}), want: "spec.template.spec.taints[0].key: Invalid value"},
		"label":                    {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Labels["x"] = "/" }), want: "spec.template.metadata.labels: Invalid value"},
		"annotation":               {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Annotations = map[string]string{"a b": ""} }), want: "spec.template.metadata.annotations: Invalid value"},
		"priority in the template": {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Annotations = map[string]string{priority: "x"} }), want: "spec.template.metadata.annotations[machinepriority.machine.sapcloud.io]: Invalid value"},
		"infrastructure is no template": {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.InfrastructureRef.Kind = "XMachine" }),
			want: `spec.template.spec.infrastructureRef.kind: Invalid value: "XMachine": is not a template kind`},
		"bootstrap is no template": {set: aSet(func(s *clusterv1.MachineSet) {
			s.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{Kind: "Template", Name: "x"}
		}), want: `spec.template.spec.bootstrap.configRef.kind: Invalid value: "Template": is not a template kind`},
		"negative":                         {set: aSet(func(s *clusterv1.MachineSet) { s.Spec.Replicas = ptr.To[int32](-1) }), want: "spec.replicas: Invalid value: -1: is negative"},
		"limits":                           {set: aSet(limited("1", "3"))},
		"limit that is none":               {set: aSet(limited("1", "many")), want: `metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size]: Invalid value: "many": is not a number of Machines`},
		"limit that is none, but replicas": {set: aSet(limited("x", "3"), func(s *clusterv1.MachineSet) { s.Spec.Replicas = ptr.To[int32](1) })},
		"names":                            {set: aSet(named("{{ .cluster.name }}-{{ .machineSet.name }}-{{ .random }}"))},
		"names without spaces":             {set: aSet(named("x-{{.random}}"))},
		"names all alike":                  {set: aSet(named("{{ .machineSet.name }}")), want: "spec.machineNaming.template: Invalid value: \"{{ .machineSet.name }}\": lacks {{ .random }}"},
		"random in a comment":              {set: aSet(named("x{{/* {{ .random }} */}}")), want: "spec.machineNaming.template: Invalid value"},
		"names of what is unknown":         {set: aSet(named("{{ .machine.name }}-{{ .random }}")), want: "spec.machineNaming.template: Invalid value: \"{{ .machine.name }}-{{ .random }}\": cannot be executed"},
		"names that are none":              {set: aSet(named("X-{{ .random }}")), want: "spec.machineNaming.template: Invalid value: \"X-{{ .random }}\": makes the name \"X-bcdfg\""},
		"names that take for ever":         {set: aSet(named("{{ range 9 }}{{ .random }}{{ end }}")), want: "spec.machineNaming.template: Invalid value: \"{{ range 9 }}{{ .random }}{{ end }}\": is not a valid name template: range"},
		"no template":                      {set: aSet(named("{{ .random")), want: "spec.machineNaming.template: Invalid value: \"{{ .random\": is not a valid name template"},
		"names that are cut":               {set: aSet(named("{{ .random }}-0123456789012345678901234567890123456789012345678901234567890123456789"))},
		"skipped checks":                   {set: aSet(skipping("KubeadmVersionSkew, ControlPlaneIsStable"))},
		"skipped check that is unknown":    {set: aSet(skipping("All,Everything")), want: `metadata.annotations[machineset.cluster.x-k8s.io/skip-preflight-checks]: Invalid value: "All,Everything": "Everything" is not a preflight check`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { expect(t, MachineSet(test.set, test.old), test.want) })
	}
}

func TestSkippedPreflightChecksWithoutTheGate(t *testing.T) {
	gate(t, feature.MachineSetPreflightChecks, false)
	expect(t, skippedPreflightChecks(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "x"}), "")
}
