package cloudinit

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/vm/rootfs"
)

// Write writes the file into the root. Parent directories are created.
func (f File) Write(root rootfs.Root) error {
	if !strings.HasPrefix(f.Path, "/") {
		return errors.Errorf("the path %q of a file is not absolute", f.Path)
	}
	content, err := f.decode()
	if err != nil {
		return errors.Wrapf(err, "decoding %s", f.Path)
	}
	mode, err := f.mode()
	if err != nil {
		return errors.Wrapf(err, "the permissions of %s", f.Path)
	}
	path := root.Path(f.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // The root above is closed.
		return errors.Wrapf(err, "creating the directory of %s", f.Path)
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if f.Append {
		flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	file, err := os.OpenFile(path, flags, mode)
	if err != nil {
		return errors.Wrapf(err, "writing %s", f.Path)
	}
	if _, err := file.Write(content); err != nil {
		_ = file.Close()
		return errors.Wrapf(err, "writing %s", f.Path)
	}
	if err := file.Close(); err != nil {
		return errors.Wrapf(err, "writing %s", f.Path)
	}
	// The mode at creation is subject to the umask, and an existing file kept its own.
	return errors.Wrapf(os.Chmod(path, mode), "setting the permissions of %s", f.Path)
}

func (f File) decode() ([]byte, error) {
	switch strings.ToLower(f.Encoding) {
	case "", "text/plain":
		return []byte(f.Content), nil
	case "b64", "base64":
		return unbase64(f.Content)
	case "gz", "gzip":
		return gunzip([]byte(f.Content))
	case "gz+base64", "gzip+base64", "gz+b64", "gzip+b64":
		packed, err := unbase64(f.Content)
		if err != nil {
			return nil, err
		}
		return gunzip(packed)
	}
	return nil, errors.Errorf("unknown encoding %q", f.Encoding)
}

// unbase64 decodes with white space left out, as a YAML block has it.
func unbase64(s string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(s), ""))
}

// mode reads the permissions: a string of octal digits, or a number as YAML parses 0644.
func (f File) mode() (fs.FileMode, error) {
	if len(f.Permissions) == 0 {
		return 0o644, nil
	}
	var number uint32
	if err := json.Unmarshal(f.Permissions, &number); err == nil {
		return fs.FileMode(number) & fs.ModePerm, nil
	}
	var digits string
	if err := json.Unmarshal(f.Permissions, &digits); err != nil {
		return 0, err
	}
	value, err := strconv.ParseUint(strings.TrimPrefix(digits, "0o"), 8, 32)
	if err != nil {
		return 0, err
	}
	return fs.FileMode(value) & fs.ModePerm, nil
}

// RunScript is the shell script of all commands, as cloud-init writes one for runcmd: a command that
// fails does not prevent the next ones. Paths are those in the root.
func (c *Config) RunScript(root rootfs.Root) string {
	var out strings.Builder
	out.WriteString("#!/bin/sh\n")
	for _, command := range c.RunCmd {
		if command.Words == nil {
			out.WriteString(root.Map(command.Line) + "\n")
			continue
		}
		quoted := make([]string, 0, len(command.Words))
		for _, word := range command.Words {
			quoted = append(quoted, "'"+strings.ReplaceAll(root.Map(word), "'", `'\''`)+"'")
		}
		out.WriteString(strings.Join(quoted, " ") + "\n")
	}
	return out.String()
}
