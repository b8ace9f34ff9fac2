package field

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	// conditionsV1Beta2 is where providers of the older contract keep conditions of the newer form.
	conditionsV1Beta2 = Path{"status", "v1beta2", "conditions"}
	conditions        = Path{"status", "conditions"}
)

// ConditionError says that a provider reports a condition that cannot be used.
type ConditionError struct {
	// Type is the type of the condition.
	Type string
	// Message is what is wrong with it, with object and path.
	Message string
}

// Error describes it.
func (e *ConditionError) Error() string { return "condition " + e.Type + ": " + e.Message }

// Condition returns the condition of that type, nil when the object has none. Both forms are
// understood, that of metav1.Condition and the older one without a mandatory reason; the newer is
// preferred where an object carries both. A condition without a valid status is a *ConditionError,
// a list that cannot be read a *TypeError.
func Condition(obj *unstructured.Unstructured, conditionType string) (*metav1.Condition, error) {
	for _, path := range []Path{conditionsV1Beta2, conditions} {
		list, err := path.List(obj)
		if err != nil {
			return nil, err
		}
		for i, entry := range list {
			if entry["type"] == conditionType {
				return conditionFrom(obj, path, i, entry, conditionType)
			}
		}
	}
	return nil, nil
}

func conditionFrom(
	obj *unstructured.Unstructured,
	path Path,
	i int,
	entry map[string]any,
	conditionType string,
) (*metav1.Condition, error) {
	texts := map[string]string{}
	for _, name := range []string{"status", "reason", "message", "lastTransitionTime"} {
		text, err := path.TextIn(obj, i, entry, name)
		if err != nil {
			return nil, &ConditionError{Type: conditionType, Message: err.Error()}
		}
		texts[name] = text
	}
	condition := &metav1.Condition{
		Type:    conditionType,
		Status:  metav1.ConditionStatus(texts["status"]),
		Reason:  texts["reason"],
		Message: texts["message"],
	}
	switch condition.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		message := path.Index(i).Child("status").String() + " must be True, False or Unknown"
		return nil, &ConditionError{Type: conditionType, Message: message}
	}
	// A transition time is for display only, so an unreadable one is left out instead of refused.
	if at, err := time.Parse(time.RFC3339, texts["lastTransitionTime"]); err == nil {
		condition.LastTransitionTime = metav1.NewTime(at)
	}
	return condition, nil
}

// Failure returns a failure from which a provider of contract v1beta1 says it cannot recover; both are "" when there is none.
func Failure(obj *unstructured.Unstructured) (reason, message string, err error) {
	if reason, err = (Path{"status", "failureReason"}).Text(obj); err != nil {
		return "", "", err
	}
	message, err = Path{"status", "failureMessage"}.Text(obj)
	return reason, message, err
}
