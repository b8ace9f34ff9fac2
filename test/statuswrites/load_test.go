package statuswrites

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/testenv"
	"millwright.dev/test/testinputs"
)

const module = "millwright.dev/"

// program is one package of this repository, without its tests.
type program struct {
	// path is the import path below the module.
	path  string
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// load type-checks the packages below the directories. What they import comes from the build cache: the flags are those of
// `make build`, so that nothing is compiled twice.
func load(t *testing.T, directories ...string) []*program {
	t.Helper()
	g := NewWithT(t)
	testinputs.Repository(t)
	arguments := []string{
		"list",
		"-export",
		"-deps",
		"-trimpath",
		"-buildvcs=false",
		"-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \",\"}}",
	}
	for _, directory := range directories {
		arguments = append(arguments, "./"+directory+"/...")
	}
	list := exec.Command("go", arguments...)
	list.Dir, list.Env = testenv.Root(), append(os.Environ(), "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	output, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())

	exports, sources := map[string]string{}, map[string][]string{}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		exports[fields[0]] = fields[1]
		path, own := strings.CutPrefix(fields[0], module)
		if directory, _, _ := strings.Cut(path, "/"); !own || !slices.Contains(directories, directory) {
			continue
		}
		for name := range strings.SplitSeq(fields[3], ",") {
			sources[path] = append(sources[path], filepath.Join(fields[2], name))
		}
	}
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var programs []*program
	for path, names := range sources {
		p := newProgram(path, fset)
		for _, name := range names {
			g.Expect(p.parse(name, nil)).To(Succeed())
		}
		g.Expect(p.check(compiled)).To(Succeed())
		programs = append(programs, p)
	}
	return programs
}

func newProgram(path string, fset *token.FileSet) *program {
	return &program{path: path, fset: fset, info: &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{},
	}}
}

// parse adds a file; source is nil for one on disk.
func (p *program) parse(name string, source any) error {
	file, err := parser.ParseFile(p.fset, name, source, parser.SkipObjectResolution)
	p.files = append(p.files, file)
	return err
}

// check resolves all identifiers.
func (p *program) check(imports types.Importer) error {
	_, err := (&types.Config{Importer: imports}).Check(module+p.path, p.fset, p.files, p.info)
	return err
}

// use is an identifier of a function or method.
type use struct {
	// of is the full name of the function, without type parameters.
	of string
	at token.Position
	// in is the function around it; nil at the level of the package.
	in *ast.FuncDecl
	// call is the call of it; nil where it is only named.
	call *ast.CallExpr
	// step means that it is passed to one of runners, which calls it at most once.
	step bool
	// repeated means that a loop is around it, or a function literal, whose number of calls is unknown.
	repeated bool
}

// uses are all identifiers of functions or methods in the package.
func (p *program) uses() []use {
	var found []use
	for _, file := range p.files {
		var path []ast.Node
		ast.Inspect(file, func(node ast.Node) bool {
			if node == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, node)
			name, ok := node.(*ast.Ident)
			if !ok {
				return true
			}
			if function, ok := p.info.Uses[name].(*types.Func); ok {
				found = append(found, p.useAt(name, function, path))
			}
			return true
		})
	}
	return found
}

func (p *program) useAt(name *ast.Ident, function *types.Func, path []ast.Node) use {
	u := use{of: function.Origin().FullName(), at: p.fset.Position(name.Pos())}
	for _, node := range path {
		switch around := node.(type) {
		case *ast.FuncDecl:
			u.in = around
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit, *ast.GoStmt, *ast.DeferStmt:
			u.repeated = true
		case *ast.CallExpr:
			if p.names(around.Fun, name) {
				u.call = around
			}
			if slices.ContainsFunc(around.Args, func(argument ast.Expr) bool { return p.names(argument, name) }) {
				u.step = slices.Contains(runners, p.called(around))
			}
		}
	}
	return u
}

// names reports whether an expression is the identifier, or a selector that ends in it.
func (p *program) names(expression ast.Expr, name *ast.Ident) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	return expression == name || ok && selector.Sel == name
}

// called is the full name of the function that is called.
func (p *program) called(call *ast.CallExpr) string {
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	}
	if function, ok := p.info.Uses[name].(*types.Func); ok {
		return function.Origin().FullName()
	}
	return ""
}

// nameOf is the full name of a function that is declared in the package.
func (p *program) nameOf(declaration *ast.FuncDecl) string {
	if function, ok := p.info.Defs[declaration.Name].(*types.Func); ok {
		return function.FullName()
	}
	return ""
}
