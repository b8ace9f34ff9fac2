package machinedeployment

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// remediationAllowedCondition passes on why the sets do not replace unhealthy Machines; its reason is that of the oldest such set.
// What they report of settings that cannot be read is propagated as well.
func remediationAllowedCondition(s *scope, failure error) condition {
	const kind = clusterv1.MachineHealthCheckRemediationAllowedCondition
	if !s.read {
		return conditions.Unknown(kind, clusterv1.MachineDeploymentRemediatingInternalErrorReason, unread(failure))
	}
	reason, notice, lines := "", "", []string{}
	for _, set := range s.sets {
		found := meta.FindStatusCondition(set.Status.Conditions, kind)
		if found == nil {
			continue
		}
		if found.Status == metav1.ConditionTrue && found.Message != "" {
			notice = found.Message
		}
		if found.Status == metav1.ConditionFalse {
			reason = cmp.Or(reason, found.Reason)
			lines = append(lines, fmt.Sprintf("MachineSet %s: %s", set.Name, strings.ReplaceAll(found.Message, "\n", "\n  ")))
		}
	}
	if reason == "" {
		return conditions.True(kind, clusterv1.MachineHealthCheckRemediationAllowedReason, notice)
	}
	return conditions.False(kind, reason, strings.Join(lines, "\n"))
}
