// Package testinputs declares to the go command what a test depends on beside what the test reads itself.
package testinputs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"millwright.dev/test/controlplane"
)

// Repository has `go test` run this test again when any file of the repository has changed. It is for tests that run go or make: what a
// child process reads is not among the inputs by which the go command decides whether a cached result is valid; a directory that the
// test reads is, with the sizes and times of its files. bin, out and hidden directories are left out.
func Repository(t testing.TB) {
	t.Helper()
	if err := read(); err != nil {
		t.Fatal("reading the directories of the repository: ", err)
	}
}

// read reads all directories once: the inputs are those of the test program.
var read = sync.OnceValue(func() error {
	root, err := controlplane.Root()
	if err == nil {
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() || path == root {
				return err
			}
			if built := path == filepath.Join(root, "bin") || path == filepath.Join(root, "out"); built || strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		})
	}
	return err
})
