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

var issueNumber = regexp.MustCompile(`\d+`)

// TestLessons checks the same of docs/lessons.md, and that a test of each row has the number of one of its issues in its name.
func TestLessons(t *testing.T) {
	checkProofs(t, "docs/lessons.md", "Issue", "Test")
	for _, row := range doccheck.Read(t, "docs/lessons.md").Table(t, "") {
		issues := issueNumber.FindAllString(row["Issue"].Text, -1)
		named := len(issues) == 0
		for _, span := range row["Test"].Code {
			named = named || testName.MatchString(span) && slices.ContainsFunc(issueNumber.FindAllString(span, -1), func(number string) bool {
				return slices.Contains(issues, number)
			})
		}
		NewWithT(t).Expect(named).To(BeTrue(), "row %q: no test has a number of it in its name", row["Issue"].Text)
	}
}

// checkProofs requires a test that exists in a column of each row of the page's tables; another column names the row.
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
