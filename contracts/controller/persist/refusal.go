package persist

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
)

// passing are the answers of the API server that say nothing about the request: a race that was lost, or too much to do. What is
// no answer, also no error at all, has the first of these reasons.
var passing = map[metav1.StatusReason]bool{
	metav1.StatusReasonUnknown: true, metav1.StatusReasonConflict: true, metav1.StatusReasonNotFound: true,
	metav1.StatusReasonAlreadyExists: true, metav1.StatusReasonTooManyRequests: true, metav1.StatusReasonTimeout: true,
	metav1.StatusReasonServerTimeout: true, metav1.StatusReasonServiceUnavailable: true,
}

// Refusal words, for a condition, what the API server refuses: by a policy, a webhook, a quota, RBAC or validation. It is
// empty when there is nothing of the kind in the error, as for a conflict or a lost connection, which pass by themselves. Of
// several refusals it has the first in alphabetical order, and how many others there are: they come in any order.
func Refusal(err error) string {
	refusals := refusals(err)
	switch len(refusals) {
	case 0:
		return ""
	case 1:
		return refusals[0]
	}
	return fmt.Sprintf("%s (and %d more)", slices.Min(refusals), len(refusals)-1)
}

// RefusalLine is a line for the message of a condition that reports something else, as a deletion that waits; empty without a refusal.
func RefusalLine(err error) string {
	refusal := Refusal(err)
	if refusal == "" {
		return ""
	}
	return "The last attempt failed and is repeated: " + refusal
}

func refusals(err error) []string {
	if several, ok := err.(kerrors.Aggregate); ok { //nolint:errorlint // an aggregate that is wrapped is one error, with one text
		var all []string
		for _, one := range several.Errors() {
			for _, refusal := range refusals(one) {
				if !slices.Contains(all, refusal) {
					all = append(all, refusal)
				}
			}
		}
		return all
	}
	if passing[apierrors.ReasonForError(err)] {
		return nil
	}
	return []string{err.Error()}
}
