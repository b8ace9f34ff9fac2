package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millwright.dev/test/testenv"
)

// upstream is where Cluster API declares its annotations and labels.
const upstream = "sigs.k8s.io/cluster-api/api/core/v1beta2"

// key matches an annotation, label, taint or finalizer of this project, of Cluster API or of the Machine Controller Manager.
var key = regexp.MustCompile(
	`^([a-z0-9-]+\.)*(millwright\.dev|x-k8s\.io|sapcloud\.io)/[A-Za-z0-9._-]+$|^[a-z0-9-]+\.machine\.sapcloud\.io$`)

// notAKey is a version of an API, or the path of a package.
var notAKey = regexp.MustCompile(`/(v\d\w*|api|core|bootstrap|contracts|providers|test)$`)

// Keys returns the annotations and labels that the code below these directories has, sorted: as text of its own, and as constants of
// Cluster API whose names end in Annotation or Label.
func Keys(t testing.TB, directories ...string) []string {
	t.Helper()
	theirs, found := upstreamKeys(t), map[string]bool{}
	for _, directory := range directories {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, one := range keysIn(file, theirs) {
				found[one] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// keysIn are those of one file.
func keysIn(file *ast.File, theirs map[string]string) (found []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			text, err := strconv.Unquote(node.Value)
			if err == nil && node.Kind == token.STRING && key.MatchString(text) && !notAKey.MatchString(text) {
				found = append(found, text)
			}
		case *ast.SelectorExpr:
			if of, ok := node.X.(*ast.Ident); ok && of.Name == "clusterv1" && theirs[node.Sel.Name] != "" {
				found = append(found, theirs[node.Sel.Name])
			}
		}
		return true
	})
	return found
}

// upstreamKeys are the constants of Cluster API for annotations and labels.
func upstreamKeys(t testing.TB) map[string]string {
	t.Helper()
	directory, err := sourceOf(upstream, ".")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of %s: %v", upstream, err)
	}
	keys := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, name := range spec.Names {
				literal, ok := spec.Values[i].(*ast.BasicLit)
				if ok && (strings.HasSuffix(name.Name, "Annotation") || strings.HasSuffix(name.Name, "Label")) {
					keys[name.Name], _ = strconv.Unquote(literal.Value)
				}
			}
			return true
		})
	}
	return keys
}
