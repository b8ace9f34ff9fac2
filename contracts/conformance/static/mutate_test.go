package static_test

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func named(name, namespace string) object {
	meta := object{"name": name, "labels": object{providerLabel: "infrastructure-sample"}}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return meta
}

// set puts a value at a path of an object; nil removes it.
func set(value any, path ...string) func(o object) {
	return func(o object) {
		if value == nil {
			unstructured.RemoveNestedField(o, path...)
		} else if err := unstructured.SetNestedField(o, value, path...); err != nil {
			panic(err)
		}
	}
}

// is reports whether an object is the CRD of the kind, or has the kind and name.
func is(o object, what string) bool {
	kind, _, _ := unstructured.NestedString(o, "spec", "names", "kind")
	name, _, _ := unstructured.NestedString(o, "metadata", "name")
	return what == "" || kind == what || o["kind"].(string)+" "+name == what
}

// in changes one object of a file, and does what else is needed so that no other rule is broken.
func in(file, what string, change func(o object), more ...mutation) mutation {
	return func(files map[string][]object) {
		changed := false
		for _, o := range files[file] {
			if is(o, what) {
				change(o)
				changed = true
			}
		}
		if !changed {
			panic("there is no " + what + " in " + file)
		}
		for _, m := range more {
			m(files)
		}
	}
}

func rename(from, to string) func(o object) {
	return func(o object) {
		name, _, _ := unstructured.NestedString(o, "metadata", "name")
		set(strings.Replace(name, strings.ToLower(from), strings.ToLower(to), 1), "metadata", "name")(o)
		set(to, "spec", "names", "kind")(o)
	}
}

func apiVersion(kind string, change func(v object)) mutation {
	return in(components, kind, func(o object) { change(o["spec"].(object)["versions"].([]any)[0].(object)) })
}

// schemaOf gives a field of a kind another type; it removes the field if there is none.
func schemaOf(kind, path, want string) mutation {
	return apiVersion(kind, func(v object) {
		at := v["schema"].(object)["openAPIV3Schema"].(object)
		names := strings.Split(path, ".")
		for i, name := range names {
			holder, key := at, name
			switch name {
			case "[]":
				key = "items"
			case "{}":
				key = "additionalProperties"
			default:
				holder = at["properties"].(object)
			}
			switch {
			case i < len(names)-1:
				at = holder[key].(object)
			case want == "":
				delete(holder, key)
			default:
				holder[key] = object{"type": want}
			}
		}
	})
}

func enum(kind, path string, values ...any) mutation {
	return apiVersion(kind, func(v object) {
		at := v["schema"].(object)["openAPIV3Schema"].(object)
		for name := range strings.SplitSeq(path, ".") {
			if name == "[]" {
				at = at["items"].(object)
			} else {
				at = at["properties"].(object)[name].(object)
			}
		}
		at["enum"] = values
	})
}

func move(from, to string) mutation {
	return func(files map[string][]object) {
		files[to] = files[from]
		delete(files, from)
	}
}

func addTo(file string, o object) mutation {
	return func(files map[string][]object) { files[file] = append(files[file], o) }
}

func add(o object) mutation { return addTo(components, o) }

func drop(what string) mutation {
	return func(files map[string][]object) {
		files[components] = slices.DeleteFunc(files[components], func(o object) bool { return is(o, what) })
	}
}

// container changes a field of the manager's container.
func container(key string, value any) mutation {
	return in(components, "Deployment manager", func(o object) {
		list, _, _ := unstructured.NestedSlice(o, "spec", "template", "spec", "containers")
		list[0].(object)[key] = value
		set(list, "spec", "template", "spec", "containers")(o)
	})
}
