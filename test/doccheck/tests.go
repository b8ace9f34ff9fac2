package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"millwright.dev/test/testenv"
)

// Tests gives the names of the tests and fuzz tests in a directory, which is relative to the root of the repository.
func Tests(t testing.TB, directory string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), filepath.FromSlash(directory), "*_test.go"))
	if err != nil {
		t.Fatalf("Finding the tests of %s: %v", directory, err)
	}
	var names []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("Reading the tests of %s: %v", directory, err)
		}
		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
