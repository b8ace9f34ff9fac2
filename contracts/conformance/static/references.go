package static

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/conformance"
)

func referenceCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{look("Components/References", references, "PR-026")}
}

// references finds what objects of the components refer to and the components do not contain.
func references(t *conformance.T, b *Bundle) {
	have := map[string]bool{}
	for _, object := range b.objects() {
		have[object.GetKind()+" "+object.GetName()] = true
		if object.GetKind() == "Certificate" {
			// cert-manager creates this Secret.
			name, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
			have["Secret "+name] = true
		}
	}
	var missing []string
	want := func(kind, name string) {
		// These exist in every cluster.
		system := strings.HasPrefix(name, "system:") || slices.Contains([]string{"cluster-admin", "admin", "edit", "view"}, name)
		given := name == "default" && kind == "ServiceAccount" || system && kind == "ClusterRole"
		if what := kind + " " + name; name != "" && !given && !have[what] && !slices.Contains(missing, what) {
			missing = append(missing, what)
		}
	}
	for _, deployment := range b.ofKind("Deployment") {
		podReferences(podSpec(deployment), want)
	}
	for _, binding := range b.ofKind("RoleBinding", "ClusterRoleBinding") {
		bindingReferences(binding, want)
	}
	for _, hooks := range b.ofKind("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration") {
		list, _, _ := unstructured.NestedSlice(hooks.Object, "webhooks")
		for _, item := range list {
			hook, _ := item.(map[string]any)
			name, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "name")
			want("Service", name)
		}
	}
	for _, c := range b.crds() {
		want("Service", c.text("spec", "conversion", "webhook", "clientConfig", "service", "name"))
	}
	check(t, "PR-026", "", len(missing) == 0, "everything that objects refer to", orElse(short(missing), "missing: ", "all are included"))
}

func bindingReferences(binding *unstructured.Unstructured, want func(kind, name string)) {
	text := func(from map[string]any, path ...string) string {
		value, _, _ := unstructured.NestedString(from, path...)
		return value
	}
	want(text(binding.Object, "roleRef", "kind"), text(binding.Object, "roleRef", "name"))
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	for _, item := range subjects {
		if subject, _ := item.(map[string]any); text(subject, "kind") == "ServiceAccount" {
			want("ServiceAccount", text(subject, "name"))
		}
	}
}

func podReferences(spec map[string]any, want func(kind, name string)) {
	account, _, _ := unstructured.NestedString(spec, "serviceAccountName")
	want("ServiceAccount", account)
	volumes, _, _ := unstructured.NestedSlice(spec, "volumes")
	for _, item := range volumes {
		volume, _ := item.(map[string]any)
		reference(volume, want, "Secret", "secretName", "secret")
		reference(volume, want, "ConfigMap", "name", "configMap")
	}
	for _, container := range containers(spec) {
		sources, _, _ := unstructured.NestedSlice(container, "envFrom")
		for _, item := range sources {
			source, _ := item.(map[string]any)
			reference(source, want, "Secret", "name", "secretRef")
			reference(source, want, "ConfigMap", "name", "configMapRef")
		}
		variables, _, _ := unstructured.NestedSlice(container, "env")
		for _, item := range variables {
			source, _ := item.(map[string]any)
			reference(source, want, "Secret", "name", "valueFrom", "secretKeyRef")
			reference(source, want, "ConfigMap", "name", "valueFrom", "configMapKeyRef")
		}
	}
}

// reference calls want with the name in the object at a path, unless it is optional.
func reference(holder map[string]any, want func(kind, name string), kind, key string, path ...string) {
	object, _, _ := unstructured.NestedMap(holder, path...)
	if name, _ := object[key].(string); object["optional"] != true {
		want(kind, name)
	}
}
