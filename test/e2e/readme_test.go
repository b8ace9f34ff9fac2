package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestReadme compares the tables of scenarios with the tests: each test is in them, and each that they name exists, in other packages too.
func TestReadme(t *testing.T) {
	g := NewWithT(t)
	tests := testsIn(g, ".")
	delete(tests, t.Name())
	inReadme := map[string]bool{}
	for _, name := range named(g, "README.md", "`(Test\\w+)`") {
		inReadme[name] = true
		g.Expect(tests).To(HaveKey(name), "README.md names a test that does not exist")
	}
	for name := range tests {
		g.Expect(inReadme).To(HaveKey(name), "README.md does not have this test")
	}
	elsewhere := named(g, "README.md", "`([\\w/-]+\\.Test\\w+)`")
	g.Expect(elsewhere).NotTo(BeEmpty())
	for _, name := range elsewhere {
		directory, test, _ := strings.Cut(name, ".")
		g.Expect(testsIn(g, filepath.Join("..", "..", directory))).To(HaveKey(test), "README.md names %s, which does not exist", name)
	}
}

// testsIn are the names of the tests of a directory.
func testsIn(g *WithT, directory string) map[string]bool {
	files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
	g.Expect(err).NotTo(HaveOccurred())
	tests := map[string]bool{}
	for _, file := range files {
		for _, name := range named(g, file, `(?m)^func (Test\w+)\(t \*testing\.T\)`) {
			tests[name] = true
		}
	}
	return tests
}

// named are the first groups of all matches in a file.
func named(g *WithT, file, pattern string) []string {
	content, err := os.ReadFile(file) // within the repository
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(content), -1) {
		names = append(names, match[1])
	}
	return names
}
