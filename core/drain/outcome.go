package drain

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"millwright.dev/contracts/controller/persist"
)

// outcome is what the API server answered to a request, as a drain needs to know it.
type outcome struct {
	// ok means that the pod is being deleted, or gone.
	ok bool
	// gone means that the pod does not exist.
	gone bool
	// budget is the PodDisruptionBudget that forbids it, if one does and the server named it.
	budget string
	// several means that more than one PodDisruptionBudget is about the pod, which forbids every eviction.
	several bool
	// reason describes why not.
	reason string
	// retryAfter is the delay that the server asked for; zero if it did not.
	retryAfter time.Duration
}

// budgetMessagePrefix begins every cause by which the eviction API names a PodDisruptionBudget; the name is
// the next word. There is no field for it (see pkg/registry/core/pod/storage/eviction.go in Kubernetes).
const budgetMessagePrefix = "The disruption budget "

// severalBudgets is the message of the eviction API for a pod with several budgets.
const severalBudgets = "more than one PodDisruptionBudget"

// toOutcome translates the answer to an eviction, or to another request.
func toOutcome(err error) outcome {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return outcome{ok: true}
	case persist.Gone(err), isReplaced(err):
		// With another UID our pod is gone too, and another of the same name exists elsewhere.
		return outcome{ok: true, gone: true}
	case apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return outcome{reason: "its namespace is being deleted, which forbids evictions; " +
			"the namespace controller deletes the pod"}
	case errors.As(err, &status):
		return refusal(err, status)
	default:
		return outcome{reason: fmt.Sprintf("the request could not be sent: %v", err)}
	}
}

func isReplaced(err error) bool {
	return persist.LostRace(err) && strings.Contains(err.Error(), "UID")
}

// refusal reads a status that is not success.
func refusal(err error, status apierrors.APIStatus) outcome {
	result := outcome{reason: status.Status().Message}
	result.several = strings.Contains(result.reason, severalBudgets)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		result.retryAfter = time.Duration(seconds) * time.Second
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type == policyv1.DisruptionBudgetCause {
				result.reason = cause.Message
				result.budget = budgetName(cause.Message)
			}
		}
	}
	return result
}

// budgetName takes the name of the PodDisruptionBudget out of a cause; empty when the server has another message.
func budgetName(message string) string {
	rest, found := strings.CutPrefix(message, budgetMessagePrefix)
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	return name
}
