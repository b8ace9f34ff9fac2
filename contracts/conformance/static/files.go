package static

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

func fileCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{
		look("ClusterTemplates/Present", templatesPresent, "PR-031"),
		// Only files of a release's directory have a known place, and that is the right one.
		eachFile("PR-032", "ClusterTemplates/Names", false, func(_ *Bundle, file File) string {
			if !templateName.MatchString(filepath.Base(file.Path)) {
				return "the file is not named cluster-template.yaml or cluster-template-<flavor>.yaml"
			}
			return ""
		}),
		eachFile("PR-033", "ClusterTemplates/Namespace", false, hasNamespace),
		eachFile("PR-034", "ClusterTemplates/OneNamespace", false, func(_ *Bundle, file File) string {
			var found []string
			for _, object := range file.Objects {
				// Objects without a namespace are created in the cluster's target namespace.
				if namespace := object.GetNamespace(); namespace != "" {
					found = append(found, namespace)
				}
			}
			slices.Sort(found)
			if found = slices.Compact(found); len(found) > 1 {
				return fmt.Sprintf("namespaces %q", found)
			}
			return ""
		}),
		eachFile("PR-035", "ClusterTemplates/Variables", false, commonVariables),
		eachFile("PR-036", "ClusterTemplates/References", false, templateReferences),
	}
}

var templateName = regexp.MustCompile(`^cluster-template(-[A-Za-z0-9._-]+)?\.yaml$`)

// eachFile returns a case that verifies every cluster template, or every ClusterClass. judge returns what is wrong with it.
func eachFile(id rules.ID, name string, classes bool, judge func(b *Bundle, file File) string) conformance.Case[*Bundle] {
	return look(name, func(t *conformance.T, b *Bundle) {
		files, what := b.Templates, "cluster template"
		if classes {
			files, what = b.Classes, "ClusterClass"
		}
		if len(files) == 0 {
			t.Skip(id, "", "no %s was given", what)
			return
		}
		for _, file := range files {
			if wrong := judge(b, file); wrong != "" {
				t.Fail(id, "", report.Failure{Object: filepath.Base(file.Path), Expected: "a " + what + " that keeps the rule", Seen: wrong})
				continue
			}
			t.Pass(id, "", "%s", filepath.Base(file.Path))
		}
	}, id)
}

func templatesPresent(t *conformance.T, b *Bundle) {
	switch {
	case len(b.Templates) > 0:
		t.Pass("PR-031", "", "%d templates", len(b.Templates))
	case len(b.kinds(rules.InfraMachine)) == 0:
		t.Skip("PR-031", "", "this is not an infrastructure provider")
	case b.Whole:
		check(t, "PR-031", "", false, "cluster-template.yaml in the directory of the components", "none")
	default:
		t.Skip("PR-031", "", "no cluster template was given; add --templates")
	}
}

func hasNamespace(_ *Bundle, file File) string {
	for _, object := range file.Objects {
		if object.GetKind() == "Namespace" {
			return "Namespace " + object.GetName()
		}
	}
	return ""
}

// commonVariables checks the fields that flags of clusterctl set.
func commonVariables(_ *Bundle, file File) string {
	var wrong []string
	for _, object := range file.Objects {
		want := func(value any, name string) {
			if value != nil && !strings.Contains(fmt.Sprint(value), name) {
				wrong = append(wrong, fmt.Sprintf("%s %s has %v where %s is set", object.GetKind(), object.GetName(), value, name))
			}
		}
		// A flavor may be about a fixed number, such as one control plane machine without a load balancer.
		count := func(value any, name string) {
			if text, variable := value.(string); variable && strings.Contains(text, "${") {
				want(value, name)
			}
		}
		at := func(path ...string) any {
			value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
			return value
		}
		switch {
		case object.GetKind() == "Cluster":
			want(object.GetName(), "CLUSTER_NAME")
			want(at("spec", "topology", "version"), "KUBERNETES_VERSION")
		case strings.HasSuffix(object.GetKind(), "ControlPlane"):
			want(at("spec", "version"), "KUBERNETES_VERSION")
			count(at("spec", "replicas"), "CONTROL_PLANE_MACHINE_COUNT")
		case object.GetKind() == "MachineDeployment":
			want(at("spec", "template", "spec", "version"), "KUBERNETES_VERSION")
			count(at("spec", "replicas"), "WORKER_MACHINE_COUNT")
		}
	}
	return strings.Join(short(wrong), "; ")
}

// templateReferences finds references of Cluster API's objects to objects outside the file.
func templateReferences(_ *Bundle, file File) string {
	have := map[string]bool{}
	for _, object := range file.Objects {
		have[object.GetKind()+" "+object.GetName()] = true
	}
	var missing []string
	for _, object := range file.Objects {
		visit(object.Object, func(key string, value map[string]any) {
			kind, _ := value["kind"].(string)
			name, _ := value["name"].(string)
			contractRef := slices.Contains([]string{"infrastructureRef", "controlPlaneRef", "configRef"}, key)
			if contractRef && name != "" && !have[kind+" "+name] {
				missing = append(missing, kind+" "+name)
			}
		})
	}
	return orElse(short(missing), "not in the file: ", "")
}

// visit calls f with each object below value and the name of its field.
func visit(value any, f func(key string, value map[string]any)) {
	switch typed := value.(type) {
	case map[string]any:
		for key, inner := range typed {
			if object, ok := inner.(map[string]any); ok {
				f(key, object)
			}
			visit(inner, f)
		}
	case []any:
		for _, inner := range typed {
			visit(inner, f)
		}
	}
}
