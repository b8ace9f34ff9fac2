// Package template creates objects from their templates: an infrastructure machine from an infrastructure
// machine template, a bootstrap config from a bootstrap config template. The rules are TP-001 to TP-005 in
// README.md.
package template

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Suffix is the suffix of the kind of every template; without it, it is the kind that is created from it.
const Suffix = clusterv1.TemplateSuffix

// lastApplied is kubectl's record of the template itself, which would be wrong on an object created from it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ShapeError means that an object cannot serve as a template. It is resolved when the object is corrected.
type ShapeError struct {
	// Kind, Namespace and Name are those of the object.
	Kind, Namespace, Name string
	// Message is what is wrong with it, with the path of the field.
	Message string
}

// Error names the object and what is wrong with it.
func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s %s/%s cannot serve as a template: %s", e.Kind, e.Namespace, e.Name, e.Message)
}

// Options set what the new object has in addition to its template.
type Options struct {
	// Name is the name of the new object. Its namespace is that of the template.
	Name string
	// ClusterName becomes the label cluster.x-k8s.io/cluster-name.
	ClusterName string
	// Labels and Annotations override those in the template.
	Labels, Annotations map[string]string
	// Owner becomes the only owner reference.
	Owner metav1.OwnerReference
}

// Clone returns an object built from a template, without creating it. It returns a *ShapeError when the
// template has no spec.template or one that cannot be read. The template is not modified, nothing is shared.
func Clone(from *unstructured.Unstructured, options Options) (*unstructured.Unstructured, error) {
	shapeError := func(format string, args ...any) error {
		return &ShapeError{
			Kind: from.GetKind(), Namespace: from.GetNamespace(), Name: from.GetName(),
			Message: fmt.Sprintf(format, args...),
		}
	}
	inner, found, err := unstructured.NestedMap(from.Object, "spec", "template")
	switch {
	case err != nil:
		return nil, shapeError("spec.template is not an object")
	case !found:
		return nil, shapeError("it has no spec.template")
	}
	kind, err := KindOf(from.GetKind())
	if err != nil {
		return nil, shapeError("%v", err)
	}
	labels, err := stringsIn(inner, "metadata", "labels")
	if err != nil {
		return nil, shapeError("spec.template.metadata.labels is not a map of strings")
	}
	annotations, err := stringsIn(inner, "metadata", "annotations")
	if err != nil {
		return nil, shapeError("spec.template.metadata.annotations is not a map of strings")
	}

	to := &unstructured.Unstructured{Object: map[string]any{}}
	if spec, ok := inner["spec"]; ok {
		to.Object["spec"] = spec
	}
	to.SetAPIVersion(from.GetAPIVersion())
	to.SetKind(kind)
	to.SetNamespace(from.GetNamespace())
	to.SetName(options.Name)
	to.SetLabels(mergedLabels(labels, options))
	to.SetAnnotations(mergedAnnotations(annotations, options, from))
	to.SetOwnerReferences([]metav1.OwnerReference{options.Owner})
	return to, nil
}

// KindOf returns the kind of the objects created from templates of a kind. It fails for kinds that do not end in
// Template, since the objects would be of the template's own kind.
func KindOf(templateKind string) (string, error) {
	kind, ok := strings.CutSuffix(templateKind, Suffix)
	if !ok || kind == "" {
		return "", fmt.Errorf("the kind %q does not end in %q", templateKind, Suffix)
	}
	return kind, nil
}

// mergedLabels applies the caller's labels over the template's, and the cluster's name over both.
func mergedLabels(labels map[string]string, options Options) map[string]string {
	merged := map[string]string{}
	maps.Copy(merged, labels)
	maps.Copy(merged, options.Labels)
	merged[clusterv1.ClusterNameLabel] = options.ClusterName
	return merged
}

// mergedAnnotations applies the caller's annotations over the template's, and over both where the object
// comes from.
func mergedAnnotations(annotations map[string]string, options Options, from *unstructured.Unstructured) map[string]string {
	merged := map[string]string{}
	maps.Copy(merged, annotations)
	maps.Copy(merged, options.Annotations)
	delete(merged, lastApplied)
	merged[clusterv1.TemplateClonedFromNameAnnotation] = from.GetName()
	merged[clusterv1.TemplateClonedFromGroupKindAnnotation] =
		schema.GroupKind{Group: from.GroupVersionKind().Group, Kind: from.GetKind()}.String()
	return merged
}

func stringsIn(object map[string]any, path ...string) (map[string]string, error) {
	values, _, err := unstructured.NestedStringMap(object, path...)
	return values, err
}
