package doccheck_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// metric matches the name of a metric in the code.
var metric = regexp.MustCompile(`"(millwright_[a-z_]*[a-z])"`)

// TestMetrics: the page has each metric of the managers, and none that they do not have.
func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	var coded []string
	for _, directory := range []string{"core", "contracts", "providers", "bootstrap"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, found := range metric.FindAllSubmatch(source, -1) {
				coded = append(coded, string(found[1]))
			}
			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	slices.Sort(coded)
	coded = slices.Compact(coded)
	g.Expect(len(coded)).To(BeNumerically(">", 30))
	page := doccheck.Read(t, "docs/reference/metrics.md")
	var documented []string
	for _, heading := range []string{"All managers", "Providers", "Orphans", "Health of Machines", "Target clusters", "Remediation",
		"CloudConfig"} {
		documented = append(documented, page.Keys(t, heading, "Metric")...)
	}
	doccheck.Compare(t, page, "metrics", documented, coded)
}
