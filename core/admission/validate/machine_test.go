package validate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

func TestMachine(t *testing.T) {
	gate(t, feature.MachineTaintPropagation, true)
	noBootstrap := func(m *clusterv1.Machine) { m.Spec.Bootstrap = clusterv1.Bootstrap{} }
	annotated := func(key, value string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Annotations = map[string]string{key: value} }
	}
	versioned := func(v string) func(*clusterv1.Machine) { return func(m *clusterv1.Machine) { m.Spec.Version = v } }
	tests := map[string]struct {
		machine, old *clusterv1.Machine
		want         string
	}{
		"valid": {machine: aMachine()},
		"with a bootstrap config": {machine: aMachine(func(m *clusterv1.Machine) {
			m.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "b", Kind: "XConfig", Name: "x"}}
		})},
		"nothing to boot from": {machine: aMachine(noBootstrap), want: "spec.bootstrap: Required value: name a bootstrap config"},
		"of a MachinePool, by label": {machine: aMachine(noBootstrap, func(m *clusterv1.Machine) {
			m.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "p"}
		})},
		"of a MachinePool, by owner": {machine: aMachine(noBootstrap, func(m *clusterv1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "p"}}
		})},
		"moved to another Cluster": {
			machine: aMachine(), old: aMachine(func(m *clusterv1.Machine) { m.Spec.ClusterName = "before" }),
			want: `spec.clusterName: Forbidden: is immutable: leave it "before"`,
		},
		"version":                     {machine: aMachine(versioned("v1.36.3"))},
		"pre-release":                 {machine: aMachine(versioned("v1.36.3-rc.0+build"))},
		"version without v":           {machine: aMachine(versioned("1.36.3")), want: `spec.version: Invalid value: "1.36.3": must start with v: write v1.36.3`},
		"half a version":              {machine: aMachine(versioned("v1.36")), want: `spec.version: Invalid value: "v1.36": is not a semantic version`},
		"force deletion":              {machine: aMachine(annotated(forceDeletion, "true"))},
		"force deletion, neither nor": {machine: aMachine(annotated(forceDeletion, "yes")), want: `metadata.annotations[machine.millwright.dev/force-deletion]: Invalid value: "yes": must be "true" or "false"`},
		"preserve when failed":        {machine: aMachine(annotated(preserve, "when-failed"))},
		"preserve, misspelt":          {machine: aMachine(annotated(preserve, "when failed")), want: `metadata.annotations[machine.millwright.dev/preserve]: Invalid value: "when failed": must be "now", "when-failed" or "false"`},
		"preserve until":              {machine: aMachine(annotated(preserveUntil, "2026-11-27T12:00:00Z"))},
		"preserve until some day":     {machine: aMachine(annotated(preserveUntil, "friday")), want: `metadata.annotations[machine.millwright.dev/preserve-until]: Invalid value: "friday": must be a time like 2026-11-27T12:00:00Z`},
		"priority":                    {machine: aMachine(annotated(priority, "1"))},
		"priority that is no number":  {machine: aMachine(annotated(priority, "first")), want: `metadata.annotations[machinepriority.machine.sapcloud.io]: Invalid value: "first": must be a whole number`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { expect(t, Machine(test.machine, test.old), test.want) })
	}
}

// TestRatchet: what was wrong before is no reason to refuse another change; what becomes wrong is.
func TestRatchet(t *testing.T) {
	gate(t, feature.MachineTaintPropagation, false)
	tainted := func(keys ...string) *clusterv1.Machine {
		return aMachine(func(m *clusterv1.Machine) {
			for _, key := range keys {
				m.Spec.Taints = append(m.Spec.Taints, clusterv1.MachineTaint{Key: key, Effect: "NoSchedule"})
			}
			m.Spec.Version = "v1.36"
		})
	}
	finalized := tainted("a.b/c")
	finalized.Finalizers = []string{"x/y"}
	expect(t, Machine(finalized, tainted("a.b/c")), "")
	expect(
		t,
		Machine(tainted("a.b/c", "a.b/d"), tainted("a.b/c")),
		"spec.taints: Forbidden: the feature gate MachineTaintPropagation is off: enable it, or remove a.b/c=:NoSchedule, a.b/d=:NoSchedule",
	)
	worse := tainted("a.b/c")
	worse.Spec.Version = "v1.37"
	expect(t, Machine(worse, tainted("a.b/c")), `spec.version: Invalid value: "v1.37": is not a semantic version`)
}
