package doccheck

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strconv"
	"testing"

	"millwright.dev/test/testenv"
)

// Literals returns the string literals that the Go files of a directory, test files aside, pass to some functions: the keys are
// the names of the functions, the values the number of the argument, from 0. What should be a constant, so that
// Constants finds it, must not be among them.
func Literals(t testing.TB, directory string, arguments map[string]int) []string {
	t.Helper()
	l := &loader{fset: token.NewFileSet()}
	files, err := l.parse(filepath.Join(testenv.Root(), filepath.FromSlash(directory)))
	if err != nil {
		t.Fatalf("Reading %s: %v", directory, err)
	}
	var found []string
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			argument, watched := arguments[calledName(call)]
			if !watched || argument >= len(call.Args) {
				return true
			}
			if literal, ok := call.Args[argument].(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, text)
				}
			}
			return true
		})
	}
	return found
}

// calledName is the name of the function or method that is called, without package or receiver.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
