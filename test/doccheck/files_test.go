package doccheck_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

// TestPages: every page leads where its links say, and names files that exist.
func TestPages(t *testing.T) {
	pages := doccheck.Pages()
	NewWithT(t).Expect(pages).To(ContainElements("README.md", "docs/architecture.md", "core/machine/README.md"))
	for _, path := range pages {
		page := doccheck.Read(t, path)
		page.CheckLinks(t)
		page.CheckFiles(t)
		page.CheckRows(t)
		page.CheckLists(t)
	}
}

func TestListsThatAreNotWholeAreFound(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{TB: t}
	doccheck.Parse("test/doccheck/x.md", []byte("| `p*.go`, `l*.go`, `f*.go`, `c*.go`, `t*.go`, `e*.go` | a |\n")).CheckLists(r)
	doccheck.Parse("test/doccheck/x.md", []byte("| `page.go`, `links.go` | a |\n")).CheckLists(r)
	g.Expect(r.reports).To(BeEmpty())
	doccheck.Parse("test/doccheck/x.md", []byte("| `p*.go`, `lists.go`, `f*.go` | a |\n\n`c*.go`, `t*.go`\n")).CheckLists(r)
	doccheck.Parse("core/README.md", []byte("| `machine` | a |\n| `drain` | a |\n| `cluster` | a |\n")).CheckLists(r)
	g.Expect(r.reports).To(ConsistOf(
		Equal("test/doccheck/x.md lists files of its directory without examples.go, links.go, literals.go"),
		MatchRegexp("core/README.md lists directories of its directory without admission, .*trim")))
}

func TestFilesThatAReadmeDoesNotNameAreFound(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{TB: t}
	doccheck.Parse("test/doccheck/x.md", []byte("`p*.go`, `l*.go`, `f*.go` and `c*.go`, `t*.go`, `e*.go`")).CheckNamesFiles(r)
	g.Expect(r.reports).To(BeEmpty())
	doccheck.Parse("test/doccheck/x.md", []byte("`p*.go`, `lists.go`, `f*.go`, `c*.go`, `t*.go`")).CheckNamesFiles(r)
	g.Expect(r.reports).To(ConsistOf("test/doccheck/x.md does not name examples.go, links.go, literals.go"))
}

func TestRowsThatAreInNoTableAreFound(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{TB: t}
	const table = "| A | B |\n|---|---|\n| a | b |\n"
	doccheck.Parse("x.md", []byte(table+"\nText\n\n```\n| code |\n```\n\n"+table)).CheckRows(r)
	g.Expect(r.reports).To(BeEmpty())
	doccheck.Parse("x.md", []byte(table+"\n| c | d |\n")).CheckRows(r)
	g.Expect(r.reports).To(ConsistOf(ContainSubstring("| c | d |")))
}

// TestIndex: what the architecture says where to find is there.
func TestIndex(t *testing.T) {
	doccheck.Read(t, "docs/architecture.md").CheckDeclarations(t, "Where to look")
}

func TestFilesAreFound(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{TB: t}
	doccheck.Parse("test/doccheck/x.md", []byte("`files.go`, `links.go`, `test/doccheck/page.go`, `core.go/x`, `go test`, `a.yaml`")).
		CheckFiles(r)
	g.Expect(r.reports).To(BeEmpty())
	doccheck.Parse("test/doccheck/x.md", []byte("`core/page.go` and `nowhere.go`")).CheckFiles(r)
	g.Expect(r.reports).To(ConsistOf(ContainSubstring("core/page.go"), ContainSubstring("nowhere.go")))
}

func TestDeclarationsAreFound(t *testing.T) {
	g := NewWithT(t)
	const table = "## Index\n\n| Question | File | Function |\n|---|---|---|\n"
	r := &recorder{TB: t}
	doccheck.Parse("x.md", []byte(table+
		"| A | `test/doccheck/page.go` | `Page`, `Read`, `Page.Headings` |\n"+
		"| B | `contracts/controller/scopes/base.go` | `Base.Save` |\n")).CheckDeclarations(r, "Index")
	g.Expect(r.reports).To(BeEmpty())
	doccheck.Parse("x.md", []byte(table+
		"| A | `test/doccheck/page.go` | `Page.Nothing` |\n| B | | `Read` |\n| C | `nowhere.go` | `Read` |\n")).CheckDeclarations(r, "Index")
	g.Expect(r.reports).
		To(ConsistOf(ContainSubstring("does not declare Page.Nothing"), ContainSubstring(`"B"`), ContainSubstring("nowhere.go")))
}
