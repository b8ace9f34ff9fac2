package controller

import (
	"k8s.io/apimachinery/pkg/api/meta"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// Reasons of events, besides those that conditions have too.
const (
	// cleanupSkippedEvent means that something stays behind in the target cluster of a CloudConfig that is deleted.
	cleanupSkippedEvent = "CleanupSkipped"
	// leftoverRemovedEvent means that the Secret and the tokens of an earlier Machine of the same name were removed.
	leftoverRemovedEvent = "LeftoverRemoved"
)

// addStatusEvents adds the events about what the status has that was written: user data that are published, and a join that is overdue.
func (s *scope) addStatusEvents() {
	if s.firstPublished {
		s.events.Normal(bootstrapv1.AvailableReason, "CreateUserData", "Created the user data in Secret %s", s.Object.Status.DataSecretName)
	}
	const kind = bootstrapv1.NodeJoinedCondition
	was, is := meta.FindStatusCondition(s.Original.Status.Conditions, kind), meta.FindStatusCondition(s.Object.Status.Conditions, kind)
	if is != nil && is.Reason == bootstrapv1.JoinOverdueReason && (was == nil || was.Reason != is.Reason) {
		s.events.Warning(is.Reason, "Join", "%s: %s", s.Object.Status.Join.Stage, is.Message)
	}
}
