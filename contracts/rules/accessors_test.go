package rules_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/rules"
)

// TestAccessorsExist: what a rule says reads its fields is declared and exported.
func TestAccessorsExist(t *testing.T) {
	g := NewWithT(t)
	declared := map[string]map[string]bool{}
	for _, rule := range rules.All() {
		for _, accessor := range strings.Split(rule.Accessor, ", ") {
			if accessor == "" {
				continue
			}
			pkg, name, _ := strings.Cut(accessor, ".")
			if declared[pkg] == nil {
				declared[pkg] = declarations(g, filepath.Join("..", pkg))
			}
			if !declared[pkg][name] {
				t.Errorf("%s names %s, which is not declared", rule.ID, accessor)
			}
			g.Expect(ast.IsExported(name[strings.LastIndexByte(name, '.')+1:])).To(BeTrue(), accessor)
		}
	}
}

// declarations are the functions, methods, types and variables of a package, methods with their type.
func declarations(g *WithT, dir string) map[string]bool {
	entries, err := os.ReadDir(dir)
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]bool{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, 0)
		g.Expect(err).NotTo(HaveOccurred())
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				found[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						found[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range s.Names {
							found[name.Name] = true
						}
					}
				}
			}
		}
	}
	return found
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if named, ok := of.(*ast.Ident); ok {
		return named.Name + "."
	}
	return ""
}

// allowed are the modules that the packages depend on which others import to read the contract.
var allowed = []string{
	"k8s.io/api",
	"k8s.io/apimachinery",
	"sigs.k8s.io/cluster-api",
	"github.com/pkg/errors",
	"k8s.io/utils",
	"sigs.k8s.io/controller-runtime",
}

// TestAccessorsAreLight: a package that imports an accessor gets no core, no provider and no cloud with it.
func TestAccessorsAreLight(t *testing.T) {
	for _, pkg := range []string{"inframachine", "bootstrapconfig", "infracluster", "controlplane", "field", "template", "version", "rules"} {
		t.Run(pkg, func(t *testing.T) {
			g := NewWithT(t)
			files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
			g.Expect(err).NotTo(HaveOccurred())
			for _, file := range files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
				g.Expect(err).NotTo(HaveOccurred())
				for _, imported := range parsed.Imports {
					g.Expect(light(strings.Trim(imported.Path.Value, `"`))).To(BeTrue(), "%s imports %s", file, imported.Path.Value)
				}
			}
		})
	}
}

func light(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	for _, module := range append(allowed, "millwright.dev/contracts") {
		if path == module || strings.HasPrefix(path, module+"/") {
			return true
		}
	}
	return false
}
