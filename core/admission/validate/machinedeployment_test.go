package validate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

func TestMachineDeployment(t *testing.T) {
	gate(t, feature.MachineTaintPropagation, true)
	limits := func(surge, unavailable *intstr.IntOrString) func(*clusterv1.MachineDeployment) {
		return func(d *clusterv1.MachineDeployment) {
			d.Spec.Rollout.Strategy.RollingUpdate = clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
				MaxSurge:       surge,
				MaxUnavailable: unavailable,
			}
		}
	}
	annotated := func(key, value string) func(*clusterv1.MachineDeployment) {
		return func(d *clusterv1.MachineDeployment) { d.Annotations = map[string]string{key: value} }
	}
	inFlight := func(value *intstr.IntOrString) func(*clusterv1.MachineDeployment) {
		return func(d *clusterv1.MachineDeployment) { d.Spec.Remediation.MaxInFlight = value }
	}
	surge, unavailable := "spec.rollout.strategy.rollingUpdate.maxSurge: Invalid value: ",
		"spec.rollout.strategy.rollingUpdate.maxUnavailable: Invalid value: "
	tests := map[string]struct {
		deployment, old *clusterv1.MachineDeployment
		want            string
	}{
		"valid":                 {deployment: aDeployment()},
		"name that is too long": {deployment: aDeployment(func(d *clusterv1.MachineDeployment) { d.Name = strings.Repeat("d", 64) }), want: "metadata.name: Invalid value"},
		"nothing to boot from":  {deployment: aDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{} }), want: "spec.template.spec.bootstrap: Required value"},
		"selector of others":    {deployment: aDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Selector.MatchLabels["x"] = "y" }), want: "spec.template.metadata.labels: Invalid value"},
		"moved to another Cluster": {deployment: aDeployment(), old: aDeployment(func(d *clusterv1.MachineDeployment) {
			d.Spec.ClusterName, d.Spec.Template.Spec.ClusterName = "before", "before"
		}), want: "spec.clusterName: Forbidden: is immutable"},
		"numbers":                     {deployment: aDeployment(limits(number(2), number(0)))},
		"percentages":                 {deployment: aDeployment(limits(text("150%"), text("10%")))},
		"both nothing":                {deployment: aDeployment(limits(number(0), number(0))), want: "spec.rollout.strategy.rollingUpdate: Invalid value: \"maxSurge 0, maxUnavailable 0\": nothing could ever be replaced"},
		"both nothing in percent":     {deployment: aDeployment(limits(text("0%"), text("0%")))},
		"surge is no number":          {deployment: aDeployment(limits(text("1"), nil)), want: surge + `"1": is neither a number nor a percentage`},
		"surge is negative":           {deployment: aDeployment(limits(number(-1), nil)), want: surge + `"-1": is negative`},
		"unavailable is no number":    {deployment: aDeployment(limits(nil, text("x%"))), want: unavailable + `"x%": is neither`},
		"unavailable is negative":     {deployment: aDeployment(limits(nil, text("-5%"))), want: unavailable + `"-5%": is negative`},
		"strategy of others":          {deployment: aDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.Strategy.Type = "Recreate" }), want: `spec.rollout.strategy.type: Unsupported value: "Recreate"`},
		"in flight":                   {deployment: aDeployment(inFlight(text("20%")))},
		"in flight is no number":      {deployment: aDeployment(inFlight(text("few"))), want: `spec.remediation.maxInFlight: Invalid value: "few": is neither`},
		"names all alike":             {deployment: aDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.MachineNaming.Template = "{{ .machineSet.name }}" }), want: "spec.machineNaming.template: Invalid value"},
		"skipped check":               {deployment: aDeployment(annotated(clusterv1.MachineSetSkipPreflightChecksAnnotation, "x")), want: "metadata.annotations[machineset.cluster.x-k8s.io/skip-preflight-checks]: Invalid value"},
		"rollback to the previous":    {deployment: aDeployment(annotated(rollbackTo, "0"))},
		"a deadline that is none":     {deployment: aDeployment(annotated(progressDeadline, "soon")), want: `metadata.annotations[machinedeployment.millwright.dev/progress-deadline]: Invalid value: "soon": must be a duration`},
		"recreate perhaps":            {deployment: aDeployment(annotated(recreate, "maybe")), want: `metadata.annotations[machinedeployment.millwright.dev/recreate]: Invalid value: "maybe": must be "true"`},
		"rollback to nowhere":         {deployment: aDeployment(annotated(rollbackTo, "last")), want: `metadata.annotations[machinedeployment.millwright.dev/rollback-to]: Invalid value: "last": must be a whole number of at least 0: 0 for the previous`},
		"progress deadline":           {deployment: aDeployment(annotated(progressDeadline, "15m"))},
		"no duration":                 {deployment: aDeployment(annotated(progressDeadline, "15")), want: "metadata.annotations[machinedeployment.millwright.dev/progress-deadline]: Invalid value: \"15\": must be a duration"},
		"recreate, neither nor":       {deployment: aDeployment(annotated(recreate, "yes")), want: "metadata.annotations[machinedeployment.millwright.dev/recreate]: Invalid value"},
		"negative number to preserve": {deployment: aDeployment(annotated(preserveMax, "-1")), want: "metadata.annotations[machine.millwright.dev/preserve-failed-max]: Invalid value"},
		"negative history":            {deployment: aDeployment(annotated(revisionHistoryLimit, "-1")), want: "metadata.annotations[machinedeployment.millwright.dev/revision-history-limit]: Invalid value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { expect(t, MachineDeployment(test.deployment, test.old), test.want) })
	}
}
