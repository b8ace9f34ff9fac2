package outcome_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/testenv"
)

// TestRunsAreNotJoinedByAnd: Go evaluates arguments before the call, so InOrder(…).And(All(…)) runs the second run whatever
// the first ends with. What depends on a run is its last step, or comes after a look at its outcome.
func TestRunsAreNotJoinedByAnd(t *testing.T) {
	g := NewWithT(t)
	g.Expect(joinedRuns(t, "example.go", `package p
		func f() { outcome.InOrder(ctx, s, a).And(outcome.All(ctx, s, b)) }`)).To(HaveLen(1))
	g.Expect(joinedRuns(t, "example.go", `package p
		func f() { end.And(outcome.Wait()) }`)).To(BeEmpty())
	for _, directory := range []string{"core", "providers", "bootstrap"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), directory), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") {
				g.Expect(joinedRuns(t, path, nil)).To(BeEmpty(), "make what depends on the other run a step of it")
			}
			return err
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
}

// joinedRuns finds the calls of And whose receiver or argument is a run of steps.
func joinedRuns(t *testing.T, path string, source any) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		and, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || and.Sel.Name != "And" || len(call.Args) != 1 {
			return true
		}
		if isRun(and.X) || isRun(call.Args[0]) {
			found = append(found, files.Position(call.Pos()).String())
		}
		return true
	})
	return found
}

func isRun(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := function.X.(*ast.Ident)
	return ok && pkg.Name == "outcome" && (function.Sel.Name == "InOrder" || function.Sel.Name == "All")
}
