package doccheck_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// placed is code of controllers by the files that it belongs to, see contributing.md.
var placed = map[string]*regexp.Regexp{
	"reconciler.go": regexp.MustCompile(`(?m)^func \(.*\) Reconcile\(\w+ context\.Context, `),
	"setup.go":      regexp.MustCompile(`ctrl\.NewControllerManagedBy\(|controller\.NewTyped\(`),
	"predicates.go": regexp.MustCompile(`(?m)^func .*\) predicate\.(Typed)?(Predicate|Funcs)\b`),
}

// elsewhere is where that code is in another file, and why.
var elsewhere = map[string]string{
	"bootstrap/cloudconfig/approval/serving.go": "a second reconciler of the package, for the other signer",
	"core/external/changed.go":                  "shared by the controllers of the core",
	"providers/driver/identity/watch.go":        "added to the controllers of others",
}

// TestLayoutOfControllers: all controllers have the files that the page for contributors describes, and the README of each names all its
// files. What all controllers share is in contracts/controller; a stand-in of the conformance suite is a provider of its own.
func TestLayoutOfControllers(t *testing.T) {
	g := NewWithT(t)
	found, excused := map[string]int{}, map[string]bool{}
	for _, root := range []string{"bootstrap", "contracts/remote", "core", "providers"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), root), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			name, _ := filepath.Rel(testenv.Root(), path)
			if filepath.Base(path) == "reconciler.go" {
				readme := filepath.ToSlash(filepath.Join(filepath.Dir(name), "README.md"))
				doccheck.Read(t, readme).CheckNamesFiles(t)
			}
			for file, code := range placed {
				switch {
				case !code.Match(content):
				case filepath.Base(path) == file:
					found[file]++
				case elsewhere[filepath.ToSlash(name)] != "":
					excused[filepath.ToSlash(name)] = true
				default:
					t.Errorf("%s has what belongs to %s: %s", name, file, code.Find(content))
				}
			}
			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(excused).To(HaveLen(len(elsewhere)), "each exception is needed")
	for file := range placed {
		g.Expect(found[file]).To(BeNumerically(">=", 8), file)
	}
}
