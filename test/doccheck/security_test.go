package doccheck_test

import (
	"regexp"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

var (
	directoryName = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9]+)*$`)
	testName      = regexp.MustCompile(`^(Test|Fuzz)\w+$`)
)

// TestSecurityTable checks that every row of docs/security.md names a test that exists: a directory, then tests in it.
func TestSecurityTable(t *testing.T) {
	checkProofs(t, "docs/security.md", "Claim", "Test that tries the lie")
}

// TestLessons checks the same of docs/lessons.md.
func TestLessons(t *testing.T) { checkProofs(t, "docs/lessons.md", "Issue", "Test") }

// checkProofs wants a test that exists in a column of each row of the page's tables; another column names the row.
func checkProofs(t *testing.T, path, name, column string) {
	t.Helper()
	g := NewWithT(t)
	page := doccheck.Read(t, path)
	page.CheckLinks(t)
	rows := page.Table(t, "")
	g.Expect(rows).NotTo(BeEmpty())
	for _, row := range rows {
		directory, named := "", 0
		for _, span := range row[column].Code {
			switch {
			case directoryName.MatchString(span):
				directory = span
			case testName.MatchString(span):
				named++
				g.Expect(slices.Contains(doccheck.Tests(t, directory), span)).To(BeTrue(), "row %q: %s is not in %s", row[name].Text, span, directory)
			}
		}
		g.Expect(named).To(BeNumerically(">", 0), "row %q names no test", row[name].Text)
	}
}
