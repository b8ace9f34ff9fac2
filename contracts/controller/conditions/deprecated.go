//nolint:staticcheck // for clients of v1beta1, as long as upstream converts for them
package conditions

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Older maps a condition to the type under which it appears to clients of the API version v1beta1.
type Older struct {
	// Type is the type of the condition as of v1beta2.
	Type string
	// As is its type as of v1beta1.
	As clusterv1.ConditionType
}

// act are reasons of False that end only when a user or another controller acts.
var act = []string{
	clusterv1.ObjectDeletedReason, clusterv1.ObjectDoesNotExistReason, clusterv1.MachineNodeDeletedReason,
	clusterv1.InternalErrorReason, clusterv1.InvalidConditionReportedReason,
}

// ToV1Beta1 derives conditions of the older form, for clients of v1beta1. It concludes nothing of its own, not even a
// time, so they change when the conditions do and cost no write. Of before, what others wrote under other types stays.
func ToV1Beta1(list []metav1.Condition, before clusterv1.Conditions, types ...Older) clusterv1.Conditions {
	after := slices.DeleteFunc(slices.Clone(before), func(have clusterv1.Condition) bool {
		return slices.ContainsFunc(types, func(t Older) bool { return t.As == have.Type })
	})
	for _, t := range types {
		if condition := meta.FindStatusCondition(list, t.Type); condition != nil {
			after = append(after, older(condition, t.As))
		}
	}
	slices.SortFunc(after, func(a, b clusterv1.Condition) int {
		return cmp.Or(rank(a.Type)-rank(b.Type), cmp.Compare(a.Type, b.Type))
	})
	if len(after) == 0 {
		return nil
	}
	return after
}

// rank puts Ready first, as clients of v1beta1 are used to.
func rank(conditionType clusterv1.ConditionType) int {
	if conditionType == clusterv1.ReadyV1Beta1Condition {
		return 0
	}
	return 1
}

// MaxOlderMessage is how many bytes a message of the older form may have, maxOlderReason how many a reason; the API allows
// as many characters, which is less than in the newer form.
const (
	MaxOlderMessage = 10240
	maxOlderReason  = 256
)

// OlderFailure are reason and message of a terminal failure in the older form; nil for what is empty.
func OlderFailure[R ~string](reason, message string) (*R, *string) {
	var (
		olderReason  *R
		olderMessage *string
	)
	if reason != "" {
		olderReason = ptr.To(R(reason))
	}
	if message != "" {
		olderMessage = ptr.To(Cut(message, MaxOlderMessage))
	}
	return olderReason, olderMessage
}

// older is a condition in the older form: a True one has no reason, a False one a severity.
func older(condition *metav1.Condition, as clusterv1.ConditionType) clusterv1.Condition {
	result := clusterv1.Condition{Type: as, Status: corev1.ConditionStatus(condition.Status), LastTransitionTime: condition.LastTransitionTime}
	if condition.Status == metav1.ConditionTrue {
		return result
	}
	result.Reason, result.Message = Cut(condition.Reason, maxOlderReason), Cut(condition.Message, MaxOlderMessage)
	if condition.Status == metav1.ConditionFalse {
		result.Severity = clusterv1.ConditionSeverityInfo
		if slices.Contains(act, condition.Reason) {
			result.Severity = clusterv1.ConditionSeverityError
		}
	}
	return result
}
