package validate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func aCheck(change ...func(*clusterv1.MachineHealthCheckSpec)) *clusterv1.MachineHealthCheck {
	check := &clusterv1.MachineHealthCheck{Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
	}}
	for _, c := range change {
		c(&check.Spec)
	}
	return check
}

func TestMachineHealthCheck(t *testing.T) {
	startup := func(seconds int32) func(*clusterv1.MachineHealthCheckSpec) {
		return func(s *clusterv1.MachineHealthCheckSpec) { s.Checks.NodeStartupTimeoutSeconds = ptr.To(seconds) }
	}
	selecting := func(labels map[string]string) func(*clusterv1.MachineHealthCheckSpec) {
		return func(s *clusterv1.MachineHealthCheckSpec) { s.Selector.MatchLabels = labels }
	}
	tests := map[string]struct {
		check, old *clusterv1.MachineHealthCheck
		want       string
	}{
		"valid":                    {check: aCheck()},
		"selects everything":       {check: aCheck(selecting(nil)), want: "spec.selector: Required value"},
		"selector that is none":    {check: aCheck(selecting(badSelector.MatchLabels)), want: "spec.selector: Invalid value"},
		"of the same Cluster":      {check: aCheck(selecting(map[string]string{clusterv1.ClusterNameLabel: "c"}))},
		"of another Cluster":       {check: aCheck(selecting(map[string]string{clusterv1.ClusterNameLabel: "d"})), want: `spec.selector.matchLabels[cluster.x-k8s.io/cluster-name]: Invalid value: "d": selects Machines of another Cluster`},
		"moved to another Cluster": {check: aCheck(), old: aCheck(func(s *clusterv1.MachineHealthCheckSpec) { s.ClusterName = "before" }), want: "spec.clusterName: Forbidden"},
		"no limit":                 {check: aCheck(startup(0))},
		"shortest limit":           {check: aCheck(startup(30))},
		"limit that is too short":  {check: aCheck(startup(29)), want: "spec.checks.nodeStartupTimeoutSeconds: Invalid value: 29: must be at least 30"},
		"share": {check: aCheck(func(s *clusterv1.MachineHealthCheckSpec) {
			s.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = text("40%")
		})},
		"share that is none": {check: aCheck(func(s *clusterv1.MachineHealthCheckSpec) {
			s.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = text("some")
		}), want: "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo: Invalid value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { expect(t, MachineHealthCheck(test.check, test.old), test.want) })
	}
}
