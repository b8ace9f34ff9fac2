// Package field reads typed values from providers' objects, whose types the core does not know.
// A value of the wrong type is an error that names object and path; nothing here panics.
package field

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Path is the way to a field from the root of an object, for example {"status", "ready"}.
type Path []string

// String writes the path as a user would, for example "status.ready".
func (p Path) String() string { return strings.Join(p, ".") }

// TypeError says that a provider wrote something of another type than the contract prescribes.
type TypeError struct {
	// Object names kind, namespace and name of the object.
	Object string
	// Path is the field of the wrong type: what the contract prescribes, or a parent of it.
	Path Path
	// Want and Got name the prescribed and the found type.
	Want, Got string
}

// Error names object, path and both types; it repeats no value, which could be confidential.
func (e *TypeError) Error() string {
	return fmt.Sprintf("%s: %s must be %s, not %s", e.Object, e.Path, e.Want, e.Got)
}

// Bool returns the boolean at the path, and false when it is absent.
func (p Path) Bool(obj *unstructured.Unstructured) (value, found bool, err error) {
	raw, found, err := p.raw(obj)
	if err != nil || !found {
		return false, false, err
	}
	value, ok := raw.(bool)
	if !ok {
		return false, false, p.typeError(obj, "a boolean", raw)
	}
	return value, true, nil
}

// Text returns the string at the path, and "" when it is absent.
func (p Path) Text(obj *unstructured.Unstructured) (string, error) {
	raw, found, err := p.raw(obj)
	if err != nil || !found {
		return "", err
	}
	value, ok := raw.(string)
	if !ok {
		return "", p.typeError(obj, "a string", raw)
	}
	return value, nil
}

// Integer returns the whole number at the path, and 0 when it is absent.
func (p Path) Integer(obj *unstructured.Unstructured) (int64, error) {
	raw, found, err := p.raw(obj)
	if err != nil || !found {
		return 0, err
	}
	value, ok := integer(raw)
	if !ok {
		return 0, p.typeError(obj, "an integer", raw)
	}
	return value, nil
}

// Object returns the object at the path, and nil when it is absent.
func (p Path) Object(obj *unstructured.Unstructured) (map[string]any, error) {
	raw, found, err := p.raw(obj)
	if err != nil || !found {
		return nil, err
	}
	value, ok := raw.(map[string]any)
	if !ok {
		return nil, p.typeError(obj, "an object", raw)
	}
	return value, nil
}

// List returns the list of objects at the path, and nil when it is absent. An entry that is no object
// is an error which names its index.
func (p Path) List(obj *unstructured.Unstructured) ([]map[string]any, error) {
	raw, found, err := p.raw(obj)
	if err != nil || !found {
		return nil, err
	}
	entries, ok := raw.([]any)
	if !ok {
		return nil, p.typeError(obj, "a list", raw)
	}
	list := make([]map[string]any, 0, len(entries))
	for i, entry := range entries {
		object, ok := entry.(map[string]any)
		if !ok {
			return nil, p.Index(i).typeError(obj, "an object", entry)
		}
		list = append(list, object)
	}
	return list, nil
}

// Index returns the path of the i-th entry of the list at p, for error messages.
func (p Path) Index(i int) Path {
	path := append(Path{}, p[:len(p)-1]...)
	return append(path, fmt.Sprintf("%s[%d]", p[len(p)-1], i))
}

// Child returns the path of a field under p.
func (p Path) Child(names ...string) Path {
	return append(append(Path{}, p...), names...)
}

// TextIn returns the string of that name in an entry of the list at p; i is the entry's index, for the error.
func (p Path) TextIn(obj *unstructured.Unstructured, i int, entry map[string]any, name string) (string, error) {
	raw, found := entry[name]
	if !found || raw == nil {
		return "", nil
	}
	value, ok := raw.(string)
	if !ok {
		return "", p.Index(i).Child(name).typeError(obj, "a string", raw)
	}
	return value, nil
}

// Within returns an error of reading an entry of the object as one of its own, with the object and the path that lead to it: p is that of
// the entry.
func (p Path) Within(obj *unstructured.Unstructured, err error) error {
	var wrong *TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	return &TypeError{Object: nameOf(obj), Path: p.Child(wrong.Path...), Want: wrong.Want, Got: wrong.Got}
}

// raw walks to the path. An explicit null counts as absent, as it does in the Kubernetes API.
func (p Path) raw(obj *unstructured.Unstructured) (any, bool, error) {
	if obj == nil {
		return nil, false, nil
	}
	var current any = obj.Object
	for i, name := range p {
		if current == nil {
			return nil, false, nil
		}
		parent, ok := current.(map[string]any)
		if !ok {
			return nil, false, p[:i].typeError(obj, "an object", current)
		}
		current = parent[name]
	}
	return current, current != nil, nil
}

func (p Path) typeError(obj *unstructured.Unstructured, want string, got any) error {
	return &TypeError{Object: nameOf(obj), Path: p, Want: want, Got: typeName(got)}
}

func nameOf(obj *unstructured.Unstructured) string {
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// typeName names a JSON type in the words of the API conventions.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case int64, int, int32, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", value)
}
