package persist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// denial is how an API server begins, behind the webhook's name, what it says of a request that a webhook has denied.
const denial = " denied the request"

// Denied reports whether an admission webhook has denied the request. Code and reason are the webhook's: many give neither, and some give
// those of answers that pass by themselves, such as a conflict.
func Denied(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	message, found := strings.CutPrefix(answer.Status().Message, `admission webhook "`)
	return found && strings.Contains(message, denial)
}

// LostRace reports whether a write was based on a version that another client has changed since, so that it may succeed once the object is
// read again.
func LostRace(err error) bool { return apierrors.IsConflict(err) && !Denied(err) }

// Gone reports whether the object of a write does not exist. A webhook that denies the write because something else does not exist may
// answer with that code as well.
func Gone(err error) bool { return apierrors.IsNotFound(err) && !Denied(err) }

// IgnoreGone returns nil for the error that the object of a write does not exist, and other errors as they are.
func IgnoreGone(err error) error {
	if Gone(err) {
		return nil
	}
	return err
}

// NameTaken reports whether something else has the name of an object that was to be created. A webhook that denies the creation since
// something else exists may answer with that reason as well.
func NameTaken(err error) bool { return apierrors.IsAlreadyExists(err) && !Denied(err) }

// NotDone reports whether the API server has answered that it did not do what it was asked for. After any other error, such as a connection
// that was cut, a write may have taken effect.
func NotDone(err error) bool { return err != nil && (!mayHaveTakenEffect(err) || Denied(err)) }

// passes reports whether an error says nothing about the request, so that the same request may succeed.
func passes(err error) bool {
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown && NotDone(err) {
		// An answer without a reason, which has a code only.
		return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err)
	}
	return passing[reason]
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
	if passes(err) && !Denied(err) {
		return nil
	}
	return []string{err.Error()}
}
