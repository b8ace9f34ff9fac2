package validate

import (
	"strconv"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func quote(text string) string { return strconv.Quote(text) }

// version validates a Kubernetes version, which may be empty.
func version(path *field.Path, text string) field.ErrorList {
	if text == "" {
		return nil
	}
	number, prefixed := strings.CutPrefix(text, "v")
	if _, err := semver.Parse(number); err != nil {
		return field.ErrorList{field.Invalid(path, text, "is not a semantic version ("+err.Error()+"): write it like v1.36.3")}
	}
	if !prefixed {
		return field.ErrorList{field.Invalid(path, text, "must start with v: write v"+number)}
	}
	return nil
}

// numberOrPercent validates an amount of Machines; none is fine.
func numberOrPercent(path *field.Path, value *intstr.IntOrString) field.ErrorList {
	if value == nil {
		return nil
	}
	// A hundred keeps the sign of every percentage.
	amount, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, value.String(), "is neither a number nor a percentage: write it like 1 or 25%")}
	case amount < 0:
		return field.ErrorList{field.Invalid(path, value.String(), "is negative: the least is 0")}
	}
	return nil
}
