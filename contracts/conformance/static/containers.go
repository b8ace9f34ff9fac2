package static

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func containerCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{
		look("Components/Namespace", namespaces, "PR-010", "PR-011", "PR-012"),
		look("Components/Manager", managers, "PR-013", "PR-014", "PR-017", "PR-018"),
		look("Components/Variables", variables, "PR-019", "PR-020"),
		look("Core/Aggregation", aggregates, "CO-048"),
	}
}

// clusterKinds are the cluster-scoped kinds in components, other than those that the components define.
var clusterKinds = []string{
	"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration",
	"ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "PriorityClass", "ClusterIssuer",
	"APIService", "StorageClass",
}

func (b *Bundle) namespaced(object *unstructured.Unstructured) bool {
	if c, found := b.find(object.GroupVersionKind().Group, object.GetKind()); found {
		return c.text("spec", "scope") != "Cluster"
	}
	return !slices.Contains(clusterKinds, object.GetKind())
}

func namespaces(t *conformance.T, b *Bundle) {
	var names, strays []string
	for _, object := range b.ofKind("Namespace") {
		names = append(names, object.GetName())
	}
	seen := fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))
	check(t, "PR-010", "", len(names) <= 1, "no more than one Namespace", seen)
	check(t, "PR-011", "", len(names) > 0, "a Namespace", seen)
	home := ""
	if len(names) > 0 {
		home = names[0]
	}
	for _, object := range b.objects() {
		if !b.namespaced(object) {
			continue
		}
		if home == "" {
			home = object.GetNamespace()
		}
		if object.GetNamespace() != home {
			strays = append(strays, fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName()))
		}
	}
	check(t, "PR-012", "", len(strays) == 0, "all namespaced objects in "+home, orElse(short(strays), "elsewhere: ", "all are in "+home))
}

// podSpec is that of a workload.
func podSpec(workload *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(workload.Object, "spec", "template", "spec")
	return spec
}

func containers(spec map[string]any) []map[string]any {
	var found []map[string]any
	for _, list := range []string{"containers", "initContainers"} {
		items, _, _ := unstructured.NestedSlice(spec, list)
		for _, item := range items {
			if container, ok := item.(map[string]any); ok {
				found = append(found, container)
			}
		}
	}
	return found
}

// canonical is a name with the domain of a registry, a repository and a tag or digest.
var canonical = regexp.MustCompile(`^([a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?|localhost(:\d+)?|[a-z0-9-]+:\d+)/[a-z0-9._/-]+` +
	`(:[\w.-]+(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})$`)

func managers(t *conformance.T, b *Bundle) {
	deployments := b.ofKind("Deployment")
	var others []string
	for _, workload := range b.ofKind("StatefulSet", "DaemonSet", "Pod", "ReplicaSet") {
		others = append(others, workload.GetKind()+" "+workload.GetName())
	}
	check(t, "PR-013", "", len(deployments) > 0 && len(others) == 0, "Deployments alone",
		fmt.Sprintf("%d Deployments %s", len(deployments), strings.Join(others, ", ")))
	var named bool
	var limited, images []string
	for _, deployment := range deployments {
		for _, container := range containers(podSpec(deployment)) {
			named = named || container["name"] == "manager"
			if image := withDefaults(fmt.Sprint(container["image"])); !canonical.MatchString(image) {
				images = append(images, image)
			}
			args, _, _ := unstructured.NestedStringSlice(container, "args")
			if i := slices.IndexFunc(args, watchesOne); i >= 0 {
				limited = append(limited, args[i])
			}
		}
	}
	if len(deployments) == 0 {
		for _, id := range []rules.ID{"PR-014", "PR-017", "PR-018"} {
			t.Skip(id, "", "the components have no Deployment")
		}
		return
	}
	check(t, "PR-014", "", named, "a container named manager", fmt.Sprintf("found: %t", named))
	check(t, "PR-017", "", len(limited) == 0, "no argument that limits the manager to a namespace", orElse(limited, "", "no such argument"))
	check(t, "PR-018", "", len(images) == 0, "registry/repository:tag or @digest", orElse(images, "", "all images have such names"))
}

func watchesOne(arg string) bool {
	value, found := strings.CutPrefix(strings.TrimLeft(arg, "-"), "namespace=")
	return found && strings.Trim(withDefaults(value), `"`) != ""
}

var opened = regexp.MustCompile(`\$\{[^}\n]*\}?`)

func variables(t *conformance.T, b *Bundle) {
	var broken, names, foreign []string
	for _, file := range b.Components {
		for _, found := range opened.FindAllString(string(file.Raw), -1) {
			match := variable.FindStringSubmatch(found)
			if match == nil || match[0] != found {
				broken = append(broken, found)
				continue
			}
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	check(t, "PR-019", "", len(broken) == 0, "variables of the form ${NAME} or ${NAME:=default}", orElse(short(broken), "",
		fmt.Sprintf("%d variables", len(names))))
	prefix := ""
	for _, object := range b.objects() {
		for _, kind := range types {
			if name, found := strings.CutPrefix(object.GetLabels()[providerLabel], kind+"-"); found && prefix == "" {
				prefix = strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
			}
		}
	}
	if prefix == "" {
		t.Skip("PR-020", "", "no label %s has the prefix of a provider type, as is normal for cores", providerLabel)
		return
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			foreign = append(foreign, name)
		}
	}
	check(t, "PR-020", "", len(foreign) == 0, "names that start with "+prefix,
		orElse(short(foreign), "", fmt.Sprintf("%d variables", len(names))))
}

func aggregates(t *conformance.T, b *Bundle) {
	for _, role := range b.ofKind("ClusterRole") {
		list, _, _ := unstructured.NestedSlice(role.Object, "aggregationRule", "clusterRoleSelectors")
		for _, item := range list {
			selector, _ := item.(map[string]any)
			labels, _, _ := unstructured.NestedStringMap(selector, "matchLabels")
			if labels["cluster.x-k8s.io/aggregate-to-manager"] == "true" {
				t.Pass("CO-048", "", "ClusterRole %s", role.GetName())
				return
			}
		}
	}
	check(t, "CO-048", "", false, "a ClusterRole that aggregates by cluster.x-k8s.io/aggregate-to-manager", "none")
}
