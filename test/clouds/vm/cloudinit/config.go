// Package cloudinit does on a simulated machine what cloud-init does with user data at the first
// boot: the files of write_files, then the commands of runcmd. See
// https://docs.cloud-init.io/en/latest/reference/modules.html.
package cloudinit

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"sigs.k8s.io/yaml"
)

// Config is what is simulated of a cloud-config.
type Config struct {
	WriteFiles []File    `json:"write_files"`
	RunCmd     []Command `json:"runcmd"`
	// Script is set instead when the user data is a script.
	Script []byte `json:"-"`
	// Ignored are the other top-level keys.
	Ignored []string `json:"-"`
}

// File is one entry of write_files.
type File struct {
	Path        string          `json:"path"`
	Content     string          `json:"content"`
	Encoding    string          `json:"encoding"`
	Permissions json.RawMessage `json:"permissions"`
	Append      bool            `json:"append"`
	// Owner and Defer are read and have no effect: everything belongs to the user of the simulator, and
	// nothing happens between write_files and runcmd.
	Owner string `json:"owner"`
	Defer bool   `json:"defer"`
}

// Command is one entry of runcmd: a line for the shell, or a list of words.
type Command struct {
	Line  string
	Words []string
}

// UnmarshalJSON reads a string or a list of scalars.
func (c *Command) UnmarshalJSON(raw []byte) error {
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.Wrap(json.Unmarshal(raw, &c.Line), "an entry of runcmd is neither a string nor a list")
	}
	for _, item := range list {
		word, ok := item.(string)
		if !ok {
			plain, err := json.Marshal(item)
			if err != nil {
				return errors.Wrap(err, "a word of runcmd")
			}
			word = string(plain)
		}
		c.Words = append(c.Words, word)
	}
	return nil
}

// Parse reads user data, gzipped or not: a cloud-config or a script.
func Parse(userData []byte) (*Config, error) {
	if bytes.HasPrefix(userData, []byte{0x1f, 0x8b}) {
		plain, err := gunzip(userData)
		if err != nil {
			return nil, errors.Wrap(err, "unpacking the user data")
		}
		userData = plain
	}
	first, _, _ := strings.Cut(string(userData), "\n")
	switch {
	case strings.HasPrefix(first, "#!"):
		return &Config{Script: userData}, nil
	case strings.TrimSpace(first) != "#cloud-config":
		return nil, errors.Errorf("user data begins with %.20q, which is neither #cloud-config nor a script", first)
	}
	var config Config
	if err := yaml.Unmarshal(userData, &config); err != nil {
		return nil, errors.Wrap(err, "reading the cloud-config")
	}
	var all map[string]any
	if err := yaml.Unmarshal(userData, &all); err != nil {
		return nil, errors.Wrap(err, "reading the cloud-config")
	}
	for key := range all {
		if key != "write_files" && key != "runcmd" {
			config.Ignored = append(config.Ignored, key)
		}
	}
	slices.Sort(config.Ignored)
	return &config, nil
}

func gunzip(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
