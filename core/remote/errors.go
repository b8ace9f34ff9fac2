package remote

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PendingError means that the API server of a target cluster has not answered a request yet. A caller that gets it waits: it is
// woken when there is an answer.
type PendingError struct {
	// Verb and Object are what was asked for.
	Verb, Object string
	// Since is when it was asked for first.
	Since time.Time
	// Unanswered means that the API server answers no request with that verb.
	Unanswered bool
}

// Error describes what is waited for. It stays the same for as long as that does.
func (e *PendingError) Error() string {
	state := "has not answered yet"
	if e.Unanswered {
		state = "does not answer in time"
	}
	return fmt.Sprintf(
		"the API server of the target cluster %s: %s of %s, asked for since %s",
		state,
		e.Verb,
		e.Object,
		e.Since.UTC().Format(time.RFC3339),
	)
}

// ReplacedError means that a write was meant for a Node that no longer exists, while another one has its name. Nothing was written.
// A caller that gets it looks again: the cache shows the other Node, or is about to.
type ReplacedError struct {
	// Node is the name, UID that of the Node that was meant.
	Node string
	UID  types.UID
}

// Error names the Node that no longer exists.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("Node %s is another one now than that with the UID %s", e.Node, e.UID)
}

// isOfAnotherUID reports whether a patch was refused because the object has another UID than the patch. To an API server that is
// a change of a field that must not change.
func isOfAnotherUID(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "metadata.uid" })
}
