package doccheck_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// TestEachKindHasAPage: each kind of ours is in the reference, with each field. A template is on the page of what is created from it.
func TestEachKindHasAPage(t *testing.T) {
	g := NewWithT(t)
	overview, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "README.md"))
	g.Expect(err).NotTo(HaveOccurred())
	definitions := shipped(t)
	g.Expect(len(definitions)).To(BeNumerically(">=", 18), "kinds of the core, of three clouds and of CloudConfig")
	for file, kind := range definitions {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			name := strings.ToLower(strings.TrimSuffix(kind, "Template")) + ".md"
			page := doccheck.Read(t, "docs/reference/"+name)
			g.Expect(strings.Fields(page.Headings()[0])).To(ContainElement(kind), "the title of the page")
			g.Expect(strings.Contains(string(overview), "(reference/"+name+")")).To(BeTrue(), "docs/README.md has no link to it")
			if strings.HasSuffix(kind, "Template") {
				return
			}
			documented := fieldsOnPage(t, page)
			for _, below := range []string{"spec", "status"} {
				fields := doccheck.Fields(t, file, below, skipped[below]...)
				missing := slices.DeleteFunc(fields, func(field string) bool { return field == "" || isDocumented(documented, below, field) })
				slices.Sort(missing)
				g.Expect(missing).To(BeEmpty(), "%s has no row in a table with the column Field for these of %s", page.Path, below)
			}
		})
	}
}

// skipped have sections or tables of their own, are deprecated with their API version, or are only read by ClusterClass.
var skipped = map[string][]string{"spec": {"topology"}, "status": {"conditions", "deprecated"}}

// shipped are the kinds of our definitions by their files.
func shipped(t *testing.T) map[string]string {
	t.Helper()
	g := NewWithT(t)
	found := map[string]string{}
	for _, pattern := range []string{"config/core/crd/generated", "config/bootstrap/*/crd", "config/providers/*/crd"} {
		files, err := filepath.Glob(filepath.Join(testenv.Root(), pattern, "*_*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			definition := &apiextensionsv1.CustomResourceDefinition{}
			g.Expect(yaml.Unmarshal(text, definition)).To(Succeed())
			if definition.Kind == "CustomResourceDefinition" {
				relative, err := filepath.Rel(testenv.Root(), file)
				g.Expect(err).NotTo(HaveOccurred())
				found[filepath.ToSlash(relative)] = definition.Spec.Names.Kind
			}
		}
	}
	return found
}

// fieldsOnPage are the code spans of all columns Field.
func fieldsOnPage(t *testing.T, page *doccheck.Page) []string {
	t.Helper()
	var found []string
	for _, row := range page.Table(t, "") {
		found = append(found, row["Field"].Code...)
	}
	return found
}

// isDocumented is true if the table has the field, or one that it is in; with or without spec or status before it.
func isDocumented(documented []string, below, field string) bool {
	for ; field != ""; field = parent(field) {
		if slices.Contains(documented, field) || slices.Contains(documented, below+"."+field) {
			return true
		}
	}
	return false
}

// parent is the field that one is in.
func parent(field string) string {
	if list, found := strings.CutSuffix(field, "[]"); found {
		return list
	}
	return field[:max(0, strings.LastIndex(field, "."))]
}
