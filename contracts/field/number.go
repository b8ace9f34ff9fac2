package field

import (
	"math"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// exact is up to where a float has every whole number.
const exact = 1 << 53

// integer is a whole number of whatever type a decoder gives it: one that knows no integers makes floats of them.
func integer(raw any) (int64, bool) {
	switch value := raw.(type) {
	case int64:
		return value, true
	case int:
		return int64(value), true
	case int32:
		return int64(value), true
	case float64:
		return int64(value), value == math.Trunc(value) && math.Abs(value) <= exact
	}
	return 0, false
}

// Quantity returns the quantity at the path, which may be written as a string or as a whole number.
func (p Path) Quantity(obj *unstructured.Unstructured) (value resource.Quantity, found bool, err error) {
	raw, found, err := p.raw(obj)
	if err != nil || !found {
		return resource.Quantity{}, false, err
	}
	if number, whole := integer(raw); whole {
		return *resource.NewQuantity(number, resource.DecimalSI), true, nil
	}
	text, ok := raw.(string)
	if !ok {
		return resource.Quantity{}, false, p.typeError(obj, "a quantity", raw)
	}
	value, err = resource.ParseQuantity(text)
	return value, err == nil, errors.Wrapf(err, "%s: %s", nameOf(obj), p)
}

// IntegerIn returns the whole number of that name in an entry of the list at p, and 0 when it is absent; i is the entry's index, for the
// error.
func (p Path) IntegerIn(obj *unstructured.Unstructured, i int, entry map[string]any, name string) (int64, error) {
	raw, found := entry[name]
	if !found || raw == nil {
		return 0, nil
	}
	value, ok := integer(raw)
	if !ok {
		return 0, p.Index(i).Child(name).typeError(obj, "an integer", raw)
	}
	return value, nil
}
