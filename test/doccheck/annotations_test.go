package doccheck_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

// TestAnnotationsPageIsComplete: what the pages of the kinds say that users may set, of this project's own and of the Machine Controller
// Manager's, has its command on the page of all annotations; test/admission types the commands.
func TestAnnotationsPageIsComplete(t *testing.T) {
	g := NewWithT(t)
	var commands strings.Builder
	page := doccheck.Read(t, "docs/reference/annotations.md")
	for _, heading := range page.Headings() {
		for _, row := range page.Table(t, heading) {
			commands.WriteString(strings.Join(row["Command"].Code, "\n") + "\n")
		}
	}
	checked := 0
	for _, kind := range []string{"machine", "machineset", "machinedeployment", "machinehealthcheck"} {
		for _, row := range doccheck.Read(t, "docs/reference/"+kind+".md").Table(t, "Annotations") {
			g.Expect(row["Annotation"].Code).NotTo(BeEmpty())
			key := row["Annotation"].Code[0]
			ours := strings.Contains(key, "millwright.dev/") || strings.Contains(key, "sapcloud.io")
			if !ours || strings.Contains(row["On"].Text+row["Meaning"].Text, "written") || strings.HasPrefix(row["Set by"].Text, "the core") {
				continue
			}
			g.Expect(strings.Contains(commands.String(), " "+key+"=")).To(BeTrue(), "%s of docs/reference/%s.md", key, kind)
			checked++
		}
	}
	g.Expect(checked).To(BeNumerically(">", 20))
}

// TestAnnotationsPageHasWhatTheCodeHas: each annotation and label that the code knows is on the page, in a command or in the table of
// those that users do not set, which explains each, and has none that is in no code.
func TestAnnotationsPageHasWhatTheCodeHas(t *testing.T) {
	g := NewWithT(t)
	const others = "Read only"
	page := doccheck.Read(t, "docs/reference/annotations.md")
	var commands strings.Builder
	for _, heading := range page.Headings() {
		for _, row := range page.Table(t, heading) {
			commands.WriteString(strings.Join(row["Command"].Code, "\n") + "\n")
		}
	}
	listed := map[string]bool{}
	for _, row := range page.Table(t, others) {
		g.Expect(row["Key"].Code).To(HaveLen(1))
		g.Expect(row["What it is"].Text).NotTo(BeEmpty(), row["Key"].Text)
		g.Expect(commands.String()).NotTo(ContainSubstring(" "+row["Key"].Code[0]+"="), "there is a command")
		listed[row["Key"].Code[0]] = true
	}
	keys := doccheck.Keys(t, "core", "contracts", "bootstrap", "providers")
	g.Expect(len(keys)).To(BeNumerically(">", 80))
	for _, key := range keys {
		// Of hooks the code has the beginning, and users the end.
		asked := strings.Contains(commands.String(), " "+key+"=") || strings.Contains(commands.String(), " "+key+"/")
		if !asked && !listed[key] {
			t.Errorf("docs/reference/annotations.md has no command for %s, and no row in %q that says what it is", key, others)
		}
		delete(listed, key)
	}
	g.Expect(listed).To(BeEmpty(), "rows of %q that no code has", others)
}
