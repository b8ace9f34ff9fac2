package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ratchet returns the errors that the old object did not have. Two errors are the same when they have the same type, field, value
// and message, so the message must mention everything that the error depends on.
func ratchet(found, before field.ErrorList) field.ErrorList {
	known := map[string]bool{}
	for _, err := range before {
		known[identity(err)] = true
	}
	var fresh field.ErrorList
	for _, err := range found {
		if !known[identity(err)] {
			fresh = append(fresh, err)
		}
	}
	return fresh
}

func identity(err *field.Error) string {
	return fmt.Sprintf("%s %s %v %s", err.Type, err.Field, err.BadValue, err.Detail)
}
