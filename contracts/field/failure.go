package field

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Failure returns a failure from which a provider of contract v1beta1 says it cannot recover; both are "" when there is none.
func Failure(obj *unstructured.Unstructured) (reason, message string, err error) {
	if reason, err = (Path{"status", "failureReason"}).Text(obj); err != nil {
		return "", "", err
	}
	message, err = Path{"status", "failureMessage"}.Text(obj)
	return reason, message, err
}
