package node

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/contracts/bootstrapdata"
)

// MaxPayload is the size of a compressed bundle that is still sent, in bytes. A Secret holds 1 MiB at
// most (MaxSecretSize of Kubernetes), with its other keys.
const MaxPayload = 900 << 10

// File is a file of a bundle.
type File struct {
	// Path is absolute, has no line breaks, and does not end in a space.
	Path string
	// Mode is octal with four digits.
	Mode string
	// Unit is the unit that the file is a part of, to restart when the file changes; empty for none.
	Unit string
	// Readers are further units to restart or reload when the file changes.
	Readers []Reader
	// Content is as it will be on disk.
	Content []byte
}

// Reader is a unit that reads a file which is not a part of it.
type Reader struct {
	// Unit is its name.
	Unit string
	// Reload means that a reload is enough.
	Reload bool
}

// Unit is a systemd unit of a bundle. Its unit file and drop-ins are among the bundle's files.
type Unit struct {
	// Name with its suffix.
	Name string
	// Enable has it start at boot.
	Enable bool
	// Command is start, restart or stop.
	Command string
	// Own means that the unit file is in the bundle, so that the unit goes when it leaves the bundle.
	Own bool
}

// Bundle is everything that a machine downloads and applies.
type Bundle struct {
	Files []File
	// Units are commanded in this order.
	Units []Unit
}

// Payload is a packed bundle.
type Payload struct {
	// Revision identifies the content: the SHA-256 of the uncompressed archive. The same content has the
	// same revision whatever compresses it, hence an upgrade of this program changes nothing on machines.
	Revision string
	// Data is the compressed archive.
	Data []byte
}

// Manifest is the table of contents that apply-cloud-config.sh reads; the format is described there.
func (b *Bundle) Manifest() string {
	var out strings.Builder
	for i, f := range b.Files {
		var units []string
		if f.Unit != "" {
			units = append(units, f.Unit)
		}
		for _, r := range f.Readers {
			mark := "+"
			if r.Reload {
				mark = "~"
			}
			units = append(units, mark+r.Unit)
		}
		unit := "-"
		if len(units) > 0 {
			unit = strings.Join(units, ",")
		}
		fmt.Fprintf(&out, "file %d %s %s %s\n", i, f.Mode, unit, f.Path)
	}
	for _, u := range b.Units {
		enable, owner := "no", "image"
		if u.Enable {
			enable = "yes"
		}
		if u.Own {
			owner = "own"
		}
		fmt.Fprintf(&out, "unit %s %s %s %s\n", u.Name, enable, u.Command, owner)
	}
	return out.String()
}

// Pack makes the payload of a bundle. It fails only when the compressed bundle exceeds MaxPayload.
func (b *Bundle) Pack() (*Payload, error) {
	archive, err := b.archive()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(archive)
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(archive); err != nil {
		return nil, errors.Wrap(err, "compressing the bundle")
	}
	if err := writer.Close(); err != nil {
		return nil, errors.Wrap(err, "compressing the bundle")
	}
	if compressed.Len() > MaxPayload {
		return nil, &TooLargeError{What: "the compressed configuration", Size: compressed.Len(), Limit: MaxPayload, Remedy: b.largest()}
	}
	return &Payload{Revision: hex.EncodeToString(sum[:]), Data: compressed.Bytes()}, nil
}

// largest names the largest files, and how to do without them.
func (b *Bundle) largest() string {
	parts := make([]bootstrapdata.Part, 0, len(b.Files))
	for _, f := range b.Files {
		parts = append(parts, bootstrapdata.NewPart("file "+f.Path, f.Content))
	}
	return bootstrapdata.Largest(parts) + ". Make them smaller, or download them by a unit"
}

func (b *Bundle) archive() ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	add := func(name string, content []byte) error {
		header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return errors.Wrapf(err, "archiving %s", name)
		}
		_, err := archive.Write(content)
		return errors.Wrapf(err, "archiving %s", name)
	}
	if err := add("manifest", []byte(b.Manifest())); err != nil {
		return nil, err
	}
	if err := add("apply.sh", []byte(compact(applyScript))); err != nil {
		return nil, err
	}
	for i, f := range b.Files {
		if err := add(fmt.Sprintf("files/%d", i), f.Content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, errors.Wrap(err, "archiving the bundle")
	}
	return out.Bytes(), nil
}

// TooLargeError means that something does not fit where it has to go.
type TooLargeError struct {
	// What is too large.
	What string
	// Size and Limit are in bytes.
	Size, Limit int
	// Remedy is what to do; empty for nothing to add.
	Remedy string
}

// Error implements error.
func (e *TooLargeError) Error() string {
	text := fmt.Sprintf("%s has %d bytes; the limit is %d", e.What, e.Size, e.Limit)
	if e.Remedy != "" {
		text += ". " + e.Remedy
	}
	return text
}
