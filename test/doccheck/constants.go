package doccheck

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright.dev/test/testenv"
)

// followed are the import paths whose constants are known; everything else is opaque.
var followed = []string{ownModule, "sigs.k8s.io/cluster-api/"}

const ownModule = "millwright.dev/"

// Constants gives the values of all string constants that the Go files of some directories use or declare, test files
// aside, and whose name the match accepts: their own and those of packages of this repository and of the Cluster
// API. The directories are relative to the root of the repository.
func Constants(t testing.TB, match func(name string) bool, directories ...string) []string {
	t.Helper()
	values := map[string]bool{}
	for _, directory := range directories {
		l := &loader{fset: token.NewFileSet(), known: map[string]*types.Package{}}
		used, err := l.constants(filepath.Join(testenv.Root(), filepath.FromSlash(directory)))
		if err != nil {
			t.Fatalf("Collecting the constants of %s: %v", directory, err)
		}
		for _, c := range used {
			if match(c.Name()) {
				values[constant.StringVal(c.Val())] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// Named accepts names that end with the word, as PausedReason does with Reason.
func Named(word string) func(string) bool {
	return func(name string) bool { return strings.HasSuffix(name, word) }
}

// loader type-checks packages as far as constants need it: errors, as of packages that are not followed, are ignored.
type loader struct {
	fset  *token.FileSet
	known map[string]*types.Package
}

func (l *loader) constants(directory string) ([]*types.Const, error) {
	files, err := l.parse(directory)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: l, Error: func(error) {}}
	_, _ = config.Check(directory, l.fset, files, info)
	var found []*types.Const
	for _, objects := range []map[*ast.Ident]types.Object{info.Uses, info.Defs} {
		for _, object := range objects {
			if c, ok := object.(*types.Const); ok && c.Val().Kind() == constant.String {
				found = append(found, c)
			}
		}
	}
	return found, nil
}

// Import implements types.Importer.
func (l *loader) Import(path string) (*types.Package, error) {
	if known, ok := l.known[path]; ok {
		return known, nil
	}
	if !slices.ContainsFunc(followed, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
		return nil, fmt.Errorf("%s is opaque", path)
	}
	directory, err := l.directory(path)
	if err != nil {
		return nil, err
	}
	files, err := l.parse(directory)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: l, Error: func(error) {}, IgnoreFuncBodies: true}
	l.known[path], _ = config.Check(path, l.fset, files, nil)
	return l.known[path], nil
}

func (l *loader) directory(path string) (string, error) {
	if inner, ok := strings.CutPrefix(path, ownModule); ok {
		return filepath.Join(testenv.Root(), inner), nil
	}
	return sourceOf(path, testenv.Root())
}

func (l *loader) parse(directory string) ([]*ast.File, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(l.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no Go files", directory)
	}
	return files, nil
}

// sourceOf finds the source of a package that the module of a directory requires. A test program that was compiled with -trimpath does not
// know where Go is, without which go/build does not ask the go command for modules.
func sourceOf(path, directory string) (string, error) {
	context := build.Default
	if context.GOROOT == "" {
		root, err := goRoot()
		if err != nil {
			return "", err
		}
		context.GOROOT = root
	}
	found, err := context.Import(path, directory, build.FindOnly)
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", path, err)
	}
	return found.Dir, nil
}

// goRoot is where the go command is that runs the tests.
var goRoot = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("reading GOROOT from the go command: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})
