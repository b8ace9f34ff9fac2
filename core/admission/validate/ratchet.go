package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ratchet leaves the problems that the old object did not have. Two problems are the same when they are of one type
// and field and speak of the same value in the same words, so each problem must mention everything that it depends on.
func ratchet(found, before field.ErrorList) field.ErrorList {
	known := map[string]bool{}
	for _, problem := range before {
		known[identity(problem)] = true
	}
	var fresh field.ErrorList
	for _, problem := range found {
		if !known[identity(problem)] {
			fresh = append(fresh, problem)
		}
	}
	return fresh
}

func identity(problem *field.Error) string {
	return fmt.Sprintf("%s %s %v %s", problem.Type, problem.Field, problem.BadValue, problem.Detail)
}
