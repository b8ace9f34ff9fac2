package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	goldast "github.com/yuin/goldmark/ast"

	"millwright.dev/test/testenv"
)

// fileName matches a code span that names a file of the repository.
var fileName = regexp.MustCompile(`^\w[\w.-]*(/[\w.-]+)*\.(go|sh|md|mod)$`)

// CheckFiles reports code spans that name a file which does not exist. A path may begin at the root of the repository or at any
// directory.
func (p *Page) CheckFiles(t testing.TB) {
	t.Helper()
	p.walk(p.root, func(node goldast.Node) {
		if node.Kind() != goldast.KindCodeSpan {
			return
		}
		if name := p.text(node); fileName.MatchString(name) && !exists(name) {
			t.Errorf("%s: there is no file %s", p.Path, name)
		}
	})
}

func exists(name string) bool {
	return slices.ContainsFunc(files(), func(file string) bool { return file == name || strings.HasSuffix(file, "/"+name) })
}

// CheckDeclarations reports rows of the tables below a heading whose column "Function" names what the file in the column "File"
// does not declare. A method is named with its type, as in `scope.phase`.
func (p *Page) CheckDeclarations(t testing.TB, heading string) {
	t.Helper()
	for _, row := range p.Table(t, heading) {
		file, names := row["File"], row["Function"]
		if len(file.Code) != 1 || len(names.Code) == 0 {
			t.Errorf("%s: the row %q has to name one file and its functions", p.Path, row["Question"].Text)
			continue
		}
		p.CheckDeclared(t, file.Code[0], names.Code)
	}
}

// CheckDeclared reports names that the file does not declare, methods as Type.method.
func (p *Page) CheckDeclared(t testing.TB, file string, names []string) {
	t.Helper()
	declared, err := declarations(file)
	if err != nil {
		t.Errorf("%s: %v", p.Path, err)
		return
	}
	for _, name := range names {
		if !slices.Contains(declared, name) {
			t.Errorf("%s: %s does not declare %s", p.Path, file, name)
		}
	}
}

// declarations are the functions, methods and types that a Go file declares, methods as Type.method.
func declarations(file string) ([]string, error) {
	parsed, err := parser.ParseFile(
		token.NewFileSet(),
		filepath.Join(testenv.Root(), filepath.FromSlash(file)),
		nil,
		parser.SkipObjectResolution,
	)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, declaration := range parsed.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			names = append(names, methodOf(d)+d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if typed, ok := spec.(*ast.TypeSpec); ok {
					names = append(names, typed.Name.Name)
				}
			}
		}
	}
	return names, nil
}

// methodOf is "Type." for a method of the type, with or without a pointer or type parameters; "" for a function.
func methodOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	receiver := d.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// Pages are the paths of all markdown pages of the repository.
func Pages() []string {
	return slices.DeleteFunc(slices.Clone(files()), func(file string) bool { return path.Ext(file) != ".md" })
}

// files are the paths of all files of the repository, without what is generated and hidden.
var files = sync.OnceValue(func() []string {
	var found []string
	root := testenv.Root()
	_ = filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "out" || name == "bin" || name == "testdata" || file != root && strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if relative, err := filepath.Rel(root, file); err == nil && !entry.IsDir() {
			found = append(found, filepath.ToSlash(relative))
		}
		return nil
	})
	return found
})
