// Package rootfs is the private root directory of a simulated machine. It is no container: programs run
// in the host's file system, and the paths that a machine may write to are mapped into the directory.
package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pkg/errors"
)

// Root is the absolute path of the directory.
type Root string

// directories exist on every machine.
var directories = []string{
	"etc/systemd/system", "opt/bin", "run", "sim/bin", "tmp", "usr/local/bin", "var/lib", "var/log",
}

// Make creates the directory, which must not exist before, with the usual ones in it. Only the owner may
// read it, since the files in it hold credentials.
func Make(path string) (Root, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", errors.Wrap(err, "finding the root directory")
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", errors.Wrap(err, "creating the root directory")
	}
	for _, f := range directories {
		if err := os.MkdirAll(filepath.Join(path, f), 0o755); err != nil { // The root above is closed.
			return "", errors.Wrap(err, "creating the root directory")
		}
	}
	return Root(path), nil
}

// Path is the machine's absolute path on the host.
func (r Root) Path(path string) string { return filepath.Join(string(r), path) }

// mapped are the directories that are the machine's own: a word's beginning, or what follows a character
// that ends a path.
var mapped = regexp.MustCompile("(^|[\\s\"'=:;,(|&<>`])(/(?:etc|var|opt|run|usr/local))(/|$|[\\s\"':;,)|&<>`])")

// terminators end a path within an argument.
const terminators = " \t\n\"':;,)|&<>`"

// Map replaces the paths below /etc, /var, /opt, /run and /usr/local in an argument of a program, also
// in the form --flag=/path and within a shell command. Paths that lie in the root already stay.
func (r Root) Map(argument string) string {
	var out strings.Builder
	rest := argument
	for {
		m := mapped.FindStringSubmatchIndex(rest)
		if m == nil {
			out.WriteString(rest)
			return out.String()
		}
		path := rest[m[4]:]
		if end := strings.IndexAny(path, terminators); end >= 0 {
			path = path[:end]
		}
		out.WriteString(rest[:m[4]])
		if !strings.HasPrefix(path, string(r)+"/") {
			out.WriteString(string(r))
		}
		out.WriteString(path)
		rest = rest[m[4]+len(path):]
	}
}

// Link creates links to all files of an image directory at their places in the root.
func (r Root) Link(image string) error {
	image, err := filepath.Abs(image)
	if err != nil {
		return errors.Wrap(err, "finding the image")
	}
	err = filepath.WalkDir(image, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := r.Path(strings.TrimPrefix(path, image))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755) // The root above is closed.
		}
		return os.Symlink(path, target)
	})
	return errors.Wrap(err, "linking the image")
}
