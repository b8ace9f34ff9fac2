package machine

import (
	"errors"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/remote"
)

// maxSyncError is how many bytes of an API server's answer are repeated in a condition.
const maxSyncError = 2000

// withSync adds to NodeHealthy how far the Node is synchronized with its Machine.
func (s *scope) withSync(healthy metav1.Condition) metav1.Condition {
	const conditionType = clusterv1.MachineNodeHealthyCondition
	switch {
	case s.Deleting(), s.sync.err == nil && (s.sync.awaited == "" || s.sync.once):
		return healthy
	case s.sync.err == nil:
		return conditions.Unknown(conditionType, clusterv1.MachineNodeInspectionFailedReason,
			"Labels, annotations and taints of Node "+s.node.Name+" are not synchronized before "+s.sync.awaited+" has been read")
	}
	message := "Labels, annotations and taints of Node " + s.node.Name + " cannot be written " + since(
		s.syncFailedSince(),
	) + ": " + syncErrorMessage(
		s.sync.err,
	)
	if healthy.Message != "" {
		message += "\n" + healthy.Message
	}
	switch {
	case !s.sync.once:
		return conditions.False(conditionType, NodeSyncFailedReason, message)
	case healthy.Status == metav1.ConditionTrue:
		return conditions.True(conditionType, NodeSyncFailedReason, message)
	}
	healthy.Message = message
	return healthy
}

// neverSynced reports whether, by the condition as read, the first synchronization failed.
func (s *scope) neverSynced() bool {
	before := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineNodeHealthyCondition)
	return before != nil && before.Status == metav1.ConditionFalse && before.Reason == NodeSyncFailedReason
}

// failedSince finds in the message of NodeHealthy since when the synchronization fails.
var failedSince = regexp.MustCompile(`^Labels, annotations and taints of Node \S+ cannot be written since (\S+Z): `)

// syncFailedSince is when the synchronization began to fail: now, unless the condition as read knows better.
func (s *scope) syncFailedSince() time.Time {
	if before := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineNodeHealthyCondition); before != nil {
		if found := failedSince.FindStringSubmatch(before.Message); found != nil {
			if moment, err := time.Parse(time.RFC3339, found[1]); err == nil {
				return moment
			}
		}
	}
	return s.Now
}

// syncErrorMessage is the message of an API server, for a condition. An error that is not an API server's may change with each
// attempt, and is about the connection.
func syncErrorMessage(err error) string {
	var status apierrors.APIStatus
	var notKept *NotKeptError
	var contested *remote.ContestedError
	switch {
	case unanswered(err) != nil:
		return unanswered(err).Error()
	case errors.As(err, &contested):
		return conditions.Cut(contested.Error(), maxSyncError)
	case errors.As(err, &notKept):
		return conditions.Cut(notKept.Error(), maxSyncError)
	case errors.As(err, &status) && status.Status().Message != "":
		return conditions.Cut(status.Status().Message, maxSyncError)
	}
	return shortReason(err)
}
