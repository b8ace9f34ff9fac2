package behaviour

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// manager is the field manager of server-side applies.
const manager = "conformance.millwright.dev"

// templates checks whether templates can be changed: immutable, dryRun and real are the rules about that.
func templates(immutable, dryRun, real rules.ID) conformance.Case[*Env] {
	return scenario("Template", []rules.ID{immutable, dryRun, real}, func(w *world) {
		template := w.template()
		if err := w.Client.Create(w.ctx, template); err != nil {
			if meta.IsNoMatchError(err) {
				w.stop("the API server serves no %s", template.GetKind())
			}
			w.must(err, "to create a template")
		}
		changed, what := w.changeable(template)
		if changed == nil {
			w.stop("no change of spec.template.spec results in another valid template: set more fields in the sample")
		}
		err := w.update(template, changed)
		if err == nil {
			w.changesAccepted(immutable, what)
			w.skip(dryRun, "changes are not refused")
			w.skip(real, "changes are not refused")
			return
		}
		w.pass(immutable, "a change of %s was refused: %v", what, err)
		err = w.apply(changed, true)
		seen := "a change of " + what + " was accepted in a dry run"
		if err != nil {
			seen = "a change of " + what + " was refused in a dry run: " + err.Error()
		}
		w.check(err == nil, dryRun, "a dry run from an object with the annotation is accepted", seen)
		err = w.apply(changed, false)
		seen = "a change of " + what + " was accepted from an object with the annotation"
		if err != nil {
			seen = "a change of " + what + " was refused from an object with the annotation: " + err.Error()
		}
		w.check(err != nil, real, "without a dry run, the annotation has no effect", seen)
	})
}

// changesAccepted fails the rule that changes are refused, unless it is a MAY.
func (w *world) changesAccepted(immutable rules.ID, what string) {
	if rule, _ := rules.ByID(immutable); rule.Level == rules.May {
		w.skip(immutable, "a change of %s is accepted, which is allowed", what)
		return
	}
	w.fail(immutable, "a change of spec.template.spec is refused", "a change of "+what+" was accepted")
}

// template returns a template from the sample.
func (w *world) template() *unstructured.Unstructured {
	document, err := w.Sample.Template.MarshalJSON()
	w.must(err, "to read the template of the sample")
	object, err := decode(filled(string(document), w.id, w.Namespace, w.marker))
	w.must(err, "to read the template of the sample")
	template := &unstructured.Unstructured{Object: map[string]any{"spec": object.Object["spec"]}}
	template.SetGroupVersionKind(w.Kind.GroupVersion().WithKind(w.Kind.Kind + "Template"))
	template.SetNamespace(w.Namespace)
	template.SetName(w.id)
	template.SetLabels(map[string]string{clusterv1.ClusterNameLabel: w.id})
	w.own(template)
	return template
}

// changeable finds a change whose result is valid as a new template: then a refusal is about the change, not about its result.
func (w *world) changeable(template *unstructured.Unstructured) (*unstructured.Unstructured, string) {
	spec, _, _ := unstructured.NestedFieldNoCopy(template.Object, "spec", "template", "spec")
	for _, change := range changesOf(spec, "spec.template.spec") {
		candidate := w.template()
		if err := unstructured.SetNestedField(candidate.Object, change.value, "spec", "template", "spec"); err != nil {
			continue
		}
		candidate.SetName(w.id + "-other")
		if w.Client.Create(w.ctx, candidate.DeepCopy(), client.DryRunAll) == nil {
			candidate.SetName(w.id)
			return candidate, change.path
		}
	}
	return nil, ""
}

// change is a changed value, in which the field at path differs.
type change struct {
	path  string
	value any
}

// changesOf returns values that differ from the given one in one field each: longer strings, larger numbers, negated booleans.
func changesOf(value any, path string) []change {
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		var changes []change
		for _, key := range keys {
			for _, inner := range changesOf(v[key], path+"."+key) {
				whole, _ := runtimeCopy(v).(map[string]any)
				whole[key] = inner.value
				changes = append(changes, change{inner.path, whole})
			}
		}
		return changes
	case []any:
		var changes []change
		for i := range v {
			for _, inner := range changesOf(v[i], fmt.Sprintf("%s[%d]", path, i)) {
				whole, _ := runtimeCopy(v).([]any)
				whole[i] = inner.value
				changes = append(changes, change{inner.path, whole})
			}
		}
		return changes
	case string:
		return []change{{path, v + "x"}, {path, strings.TrimRight(v, "x") + "0"}}
	case bool:
		return []change{{path, !v}}
	case int64:
		return []change{{path, v + 1}}
	}
	return nil
}

// runtimeCopy deep-copies a JSON value.
func runtimeCopy(value any) any {
	object := (&unstructured.Unstructured{Object: map[string]any{"value": value}}).DeepCopy()
	return object.Object["value"]
}

// update changes spec.template.spec of a template, and retries after conflicts with its provider.
func (w *world) update(template, changed *unstructured.Unstructured) error {
	return retry(w.ctx, func() error {
		current := template.DeepCopy()
		if err := w.Client.Get(w.ctx, client.ObjectKeyFromObject(template), current); err != nil {
			w.must(err, "to read a template")
		}
		current.Object["spec"] = changed.Object["spec"]
		err := w.Client.Update(w.ctx, current)
		if err != nil && !apierrors.IsConflict(err) && !refused(err) {
			w.must(err, "to change a template")
		}
		return err
	})
}

// apply applies a change as the topology controller does.
func (w *world) apply(changed *unstructured.Unstructured, dryRun bool) error {
	object := changed.DeepCopy()
	object.SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
	body, err := json.Marshal(object.Object)
	w.must(err, "to write a template")
	options := []client.PatchOption{client.FieldOwner(manager), client.ForceOwnership}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	err = w.Client.Patch(w.ctx, object, client.RawPatch(types.ApplyPatchType, body), options...)
	if err != nil && !refused(err) {
		w.must(err, "to apply a template")
	}
	return err
}

// refused reports whether the API server refused a request, in contrast to a failure.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
