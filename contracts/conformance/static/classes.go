package static

import (
	"path/filepath"
	"slices"
	"strings"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
)

func classCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{
		look("ClusterClasses/Present", func(t *conformance.T, b *Bundle) {
			if len(b.Classes) == 0 {
				t.Skip("PR-038", "", "no ClusterClass was given; it is optional")
				return
			}
			t.Pass("PR-038", "", "%d files", len(b.Classes))
		}, "PR-038"),
		eachFile("PR-039", "ClusterClasses/Names", true, func(_ *Bundle, file File) string {
			for _, object := range file.Objects {
				if object.GetKind() == "ClusterClass" && filepath.Base(file.Path) == "clusterclass-"+object.GetName()+".yaml" {
					return ""
				}
			}
			return "the file is not named after a ClusterClass in it"
		}),
		eachFile("PR-040", "ClusterClasses/Namespace", true, hasNamespace),
		eachFile("PR-041", "ClusterClasses/References", true, func(_ *Bundle, file File) string {
			var found []string
			for _, object := range file.Objects {
				if object.GetKind() != "ClusterClass" {
					continue
				}
				visit(object.Object["spec"], func(key string, value map[string]any) {
					if namespace, _ := value["namespace"].(string); namespace != "" {
						found = append(found, key+" in "+namespace)
					}
				})
			}
			return strings.Join(short(found), ", ")
		}),
		eachFile("PR-042", "ClusterClasses/Objects", true, func(_ *Bundle, file File) string {
			for _, object := range file.Objects {
				if object.GetNamespace() != "" {
					return object.GetKind() + " " + object.GetName() + " is in " + object.GetNamespace()
				}
			}
			return ""
		}),
		look("ClusterClasses/Shared", sharedObjects, "PR-043"),
		eachFile("PR-044", "ClusterClasses/Variables", true, func(_ *Bundle, file File) string {
			return strings.Join(short(opened.FindAllString(string(file.Raw), -1)), ", ")
		}),
	}
}

func sharedObjects(t *conformance.T, b *Bundle) {
	if len(b.Classes) == 0 {
		t.Skip("PR-043", "", "no ClusterClass was given")
		return
	}
	owner, shared := map[string]string{}, []string{}
	for _, file := range b.Classes {
		for _, object := range file.Objects {
			key := object.GetKind() + " " + object.GetName()
			if first, taken := owner[key]; taken && first != file.Path && !slices.Contains(shared, key) {
				shared = append(shared, key)
			}
			owner[key] = file.Path
		}
	}
	if len(shared) > 0 {
		t.Fail("PR-043", "", report.Failure{Expected: "objects in the file of one class", Seen: strings.Join(short(shared), ", ")})
		return
	}
	t.Pass("PR-043", "", "%d files", len(b.Classes))
}
