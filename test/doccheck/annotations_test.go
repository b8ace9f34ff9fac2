package doccheck_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

// TestAnnotationsPageIsComplete: what the pages of the kinds say that people may set, of this project's own and of the Machine Controller
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
