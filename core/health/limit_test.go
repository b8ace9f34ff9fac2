package health

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestLimitOf(t *testing.T) {
	share := func(v intstr.IntOrString) clusterv1.MachineHealthCheckRemediationTriggerIf {
		return clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: ptr.To(v)}
	}
	within := func(v string) clusterv1.MachineHealthCheckRemediationTriggerIf {
		return clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyInRange: v, UnhealthyLessThanOrEqualTo: ptr.To(intstr.FromInt32(0))}
	}
	for name, test := range map[string]struct {
		trigger          clusterv1.MachineHealthCheckRemediationTriggerIf
		targets, healthy int
		allowed          bool
		more             int
		message, wantErr string
	}{
		"no limit, all unhealthy":           {clusterv1.MachineHealthCheckRemediationTriggerIf{}, 5, 0, true, 0, "", ""},
		"no limit":                          {clusterv1.MachineHealthCheckRemediationTriggerIf{}, 5, 4, true, 4, "", ""},
		"no targets":                        {share(intstr.FromString("40%")), 0, 0, true, 0, "", ""},
		"a share, rounded down":             {share(intstr.FromString("40%")), 4, 3, true, 0, "", ""},
		"a share, exceeded":                 {share(intstr.FromString("40%")), 4, 2, false, 0, "2 of 4 Machines are unhealthy or not started, and spec.remediation.triggerIf.unhealthyLessThanOrEqualTo 40% allows 1", ""},
		"a number":                          {share(intstr.FromInt32(2)), 10, 8, true, 0, "", ""},
		"a number, exceeded":                {share(intstr.FromInt32(2)), 10, 7, false, 0, "3 of 10", ""},
		"none at all":                       {share(intstr.FromInt32(0)), 3, 2, false, 0, "allows 0", ""},
		"in a range, whatever the share":    {within("[2-3]"), 5, 3, true, 1, "", ""},
		"at the upper end of a range":       {within("[2-3]"), 5, 2, true, 0, "", ""},
		"a range of one":                    {within("[2-2]"), 5, 3, true, 0, "", ""},
		"a range without a number to begin": {within("[x-3]"), 5, 3, false, 0, "", "[x-3]"},
		"a range without a number to end":   {within("[2-x]"), 5, 3, false, 0, "", "[2-x]"},
		"below a range":                     {within("[2-3]"), 5, 4, false, 0, "1 of 5 Machines are unhealthy or not started, and spec.remediation.triggerIf.unhealthyInRange [2-3] allows from 2 to 3", ""},
		"above a range":                     {within("[2-3]"), 5, 1, false, 0, "4 of 5", ""},
		"a range the wrong way round":       {within("[3-2]"), 5, 1, false, 0, "", "[3-2]"},
		"a range that is none":              {within("3"), 5, 1, false, 0, "", "correct it"},
		"a share that is none":              {share(intstr.FromString("few")), 5, 1, false, 0, "", `"few"`},
		"a number that is none for a range": {within("[99999999999-1]"), 5, 1, false, 0, "", "correct it"},
	} {
		t.Run(name, func(t *testing.T) {
			g, check := NewWithT(t), &clusterv1.MachineHealthCheck{}
			check.Spec.Remediation.TriggerIf = test.trigger
			got, err := LimitOf(check, test.targets, test.healthy)
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				g.Expect(got.Allowed).To(BeFalse())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Allowed).To(Equal(test.allowed))
			g.Expect(got.Remediations).To(Equal(test.more))
			g.Expect(got.Message).To(ContainSubstring(test.message))
		})
	}
}
