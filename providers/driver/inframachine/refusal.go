package inframachine

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// passing are the answers of the API server that say nothing about the request: they pass by themselves.
var passing = map[metav1.StatusReason]bool{
	metav1.StatusReasonUnknown: true, metav1.StatusReasonConflict: true, metav1.StatusReasonNotFound: true,
	metav1.StatusReasonTooManyRequests: true, metav1.StatusReasonTimeout: true, metav1.StatusReasonServerTimeout: true,
	metav1.StatusReasonServiceUnavailable: true,
}

// isRefusal says whether the API server refuses a request by a policy, a webhook, RBAC or validation, so that a person has to
// act.
func isRefusal(err error) bool {
	return err != nil && !passing[apierrors.ReasonForError(err)]
}

// refused explains what the API server refuses. The next try comes with the queue's own backoff.
func refused(err error) *reasoned {
	return &reasoned{driverv1.RefusedByAPIServerReason, strings.TrimRight(err.Error(), ".") +
		". Tried again slowly; allow it to the provider"}
}
