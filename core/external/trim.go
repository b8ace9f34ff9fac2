package external

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/core/trim"
)

var (
	// metadata are the fields of the metadata of a provider's object that the core reads, compares or writes.
	metadata = []string{
		"name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "labels", "annotations", "ownerReferences", "finalizers",
	}
	// summaries are the conditions that the core mirrors.
	summaries = []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition}
	// conditionLists is where the versions of the contract have conditions.
	conditionLists = []field.Path{{"status", "conditions"}, {"status", "v1beta2", "conditions"}}
	// ofCondition are the fields of a condition that are mirrored. The copy has a time of its own.
	ofCondition = []string{"type", "status", "reason", "message"}
	// unique are fields whose texts are about one object, so that there is nothing to share.
	unique = []string{"name", "uid", "resourceVersion", "deletionTimestamp", "providerID", "address", "dataSecretName", "nodeName"}
)

// lastApplied is kubectl's copy of the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Trim is for the cache: it returns of a provider's object what the contracts give a meaning. Templates stay whole,
// as all of them is cloned, apart from managed fields. A trimmed object must be written by patches of what differs
// from it, never as a whole: those leave alone what was trimmed.
func Trim(whole *unstructured.Unstructured) *unstructured.Unstructured {
	if strings.HasSuffix(whole.GetKind(), clusterv1.TemplateSuffix) {
		whole.SetManagedFields(nil)
		return whole
	}
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	for _, key := range []string{"apiVersion", "kind"} {
		keep(whole.Object, kept.Object, field.Path{key})
	}
	for _, key := range metadata {
		keep(whole.Object, kept.Object, field.Path{"metadata", key})
	}
	dropLastApplied(kept.Object)
	for _, path := range slices.Concat(watched, conditionLists) {
		keep(whole.Object, kept.Object, path)
	}
	for _, path := range conditionLists {
		summarize(kept, path)
	}
	return kept
}

// dropLastApplied removes kubectl's copy from the annotations. Nothing may be written into these: they may be shared,
// also those that Trim was given, since client-go trims some objects twice.
func dropLastApplied(kept map[string]any) {
	metadata, _ := kept["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, found := annotations[lastApplied]; !found {
		return
	}
	rest := maps.Clone(annotations)
	delete(rest, lastApplied)
	metadata["annotations"] = shared("annotations", rest)
}

// keep copies a field if it is there. What should be an object on the way to it and is none is copied as it is, for
// the readers of the contract to report.
func keep(from, to map[string]any, path field.Path) {
	for i, key := range path {
		value, found := from[key]
		if !found {
			return
		}
		inner, isObject := value.(map[string]any)
		if i == len(path)-1 || !isObject {
			to[trim.Text(key)] = shared(key, value)
			return
		}
		next, there := to[key].(map[string]any)
		if !there {
			next = map[string]any{}
			to[trim.Text(key)] = next
		}
		from, to = inner, next
	}
}

// summarize drops all conditions of a list but those that the core mirrors. An invalid list stays whole, so
// that the error names the right entry.
func summarize(obj *unstructured.Unstructured, path field.Path) {
	entries, err := path.List(obj)
	if err != nil || entries == nil {
		return
	}
	kept := make([]any, 0, len(summaries))
	for _, kind := range summaries {
		if _, err := field.Condition(obj, kind); err != nil {
			return
		}
	}
	for _, entry := range entries {
		if kind, ok := entry["type"].(string); ok && slices.Contains(summaries, kind) {
			kept = append(kept, shared("conditions", only(entry, ofCondition)))
		}
	}
	last := len(path) - 1
	if parent, _, err := unstructured.NestedFieldNoCopy(obj.Object, path[:last]...); err == nil {
		parent.(map[string]any)[path[last]] = kept
	}
}

// only returns the fields of an object that are asked for.
func only(object map[string]any, names []string) map[string]any {
	kept := map[string]any{}
	for _, name := range names {
		if value, found := object[name]; found {
			kept[name] = value
		}
	}
	return kept
}

// shared copies the value of a field, with texts and whole objects that others have too kept once.
func shared(name string, value any) any {
	switch typed := value.(type) {
	case map[string]any:
		if !slices.ContainsFunc(unique, func(key string) bool { _, found := typed[key]; return found }) {
			if one, ok := trim.Object(typed); ok {
				return one
			}
		}
		object := make(map[string]any, len(typed))
		for key, inner := range typed {
			object[trim.Text(key)] = shared(key, inner)
		}
		return object
	case []any:
		list := make([]any, 0, len(typed))
		for _, inner := range typed {
			list = append(list, shared(name, inner))
		}
		return list
	case string:
		if !slices.Contains(unique, name) {
			return trim.Text(typed)
		}
	}
	return value
}
