package doccheck_test

import (
	"go/ast"
	"go/parser"
	"go/token"
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

// reasonArguments are the functions that take the reason of an event or condition, and which argument it is.
var reasonArguments = map[string]int{
	"Normal": 0, "Warning": 0, "timedOut": 0, "True": 1, "False": 1, "Unknown": 1, "About": 2, "Eventf": 3,
}

// TestReasonsOfControllers: the reasons of events are constants in events.go whose names end in Event, those of conditions in
// conditions.go, with names that end in Reason. What is both is a condition's. Packages of an API have files of their own.
func TestReasonsOfControllers(t *testing.T) {
	g := NewWithT(t)
	directories := controllers(t)
	g.Expect(directories).
		To(ContainElements("core/machine", "core/safety/overshoot", "bootstrap/cloudconfig/approval", "providers/driver/inframachine"))
	for _, directory := range directories {
		literals := slices.DeleteFunc(doccheck.Literals(t, directory, reasonArguments), func(s string) bool { return s == "" })
		g.Expect(literals).To(BeEmpty(), "reasons that are no constants in "+directory)
		for name, file := range stringConstants(t, directory) {
			g.Expect(name).NotTo(MatchRegexp(`^([Rr]eason|[Ee]vent)[A-Z]`), "in "+directory)
			switch {
			case strings.HasSuffix(name, "Event"):
				g.Expect(file).To(Equal("events.go"), directory+": "+name)
			case strings.HasSuffix(name, "Reason"):
				g.Expect(file).To(Equal("conditions.go"), directory+": "+name)
			}
		}
	}
}

var setsUp = regexp.MustCompile(`\) SetupWithManager\(|Recorder\.Eventf\(`)

// controllers are the directories in which a controller is set up, or events are recorded.
func controllers(t *testing.T) (directories []string) {
	t.Helper()
	for _, top := range []string{"core", "bootstrap", "providers"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && setsUp.Match(text) {
				directory, err := filepath.Rel(testenv.Root(), filepath.Dir(path))
				directories = append(directories, filepath.ToSlash(directory))
				return err
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(directories)
	return slices.Compact(directories)
}

// stringConstants are the constants of a directory that are declared with a string literal, with the names of their files.
func stringConstants(t *testing.T, directory string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), filepath.FromSlash(directory), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				value, ok := spec.(*ast.ValueSpec)
				if !ok || len(value.Values) != 1 {
					continue
				}
				if literal, ok := value.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
					found[value.Names[0].Name] = filepath.Base(path)
				}
			}
		}
	}
	return found
}
