package machines

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// undisturbed is what ScalingUp says while nothing hinders a set.
var undisturbed = regexp.MustCompile(`^Scaling up from \d+ to \d+ replicas$`)

// Hindrance is what a set says of Machines that it cannot create, complete or update: what blocks it, or the last refusal.
// It is empty while nothing hinders the set.
func Hindrance(set *clusterv1.MachineSet) string {
	said := meta.FindStatusCondition(set.Status.Conditions, clusterv1.MachineSetScalingUpCondition)
	if said == nil || undisturbed.MatchString(said.Message) ||
		said.Status != metav1.ConditionTrue && said.Reason != clusterv1.MachineSetScalingUpInternalErrorReason {
		return ""
	}
	return said.Message
}
