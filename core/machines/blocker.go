package machines

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reasons of conditions that Cluster API does not have.
const (
	// InvalidSpecReason means that the spec must be corrected before Machines are created or deleted; the
	// message names field and remedy.
	InvalidSpecReason = "InvalidSpec"
	// BlockedReason means that Machines are missing and cannot be created; the message names the cause.
	BlockedReason = "ScalingUpBlocked"
)

// undisturbed is the message of ScalingUp while nothing blocks a set.
var undisturbed = regexp.MustCompile(`^Scaling up from \d+ to \d+ replicas$`)

// failedAttempt begins the line of a message that has the error of the last attempt.
const failedAttempt = "The last attempt failed and is repeated: "

// Blocker is what a set reports of Machines that it cannot create, complete or update: what blocks it, or the last refusal.
// It is empty while nothing blocks the set.
func Blocker(set *clusterv1.MachineSet) string {
	found := meta.FindStatusCondition(set.Status.Conditions, clusterv1.MachineSetScalingUpCondition)
	if found == nil || undisturbed.MatchString(found.Message) ||
		found.Status != metav1.ConditionTrue && found.Reason != clusterv1.MachineSetScalingUpInternalErrorReason {
		return ""
	}
	return found.Message
}

// RejectedDeletion returns why the last attempt of a set to delete Machines failed, from its condition ScalingDown. It is empty if
// none did.
func RejectedDeletion(set *clusterv1.MachineSet) string {
	found := meta.FindStatusCondition(set.Status.Conditions, clusterv1.MachineSetScalingDownCondition)
	if found == nil || found.Status != metav1.ConditionTrue {
		return ""
	}
	_, why, _ := strings.Cut(found.Message, "\n"+failedAttempt)
	return why
}
