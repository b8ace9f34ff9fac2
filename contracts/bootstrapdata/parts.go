// Package bootstrapdata explains to users what makes bootstrap data large.
package bootstrapdata

import (
	"bytes"
	"cmp"
	"compress/flate"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// listed is the number of parts that a message names; the rest is summed up.
const listed = 5

// nameLimit is the number of characters that a message has of a part's name.
const nameLimit = 100

// Keys of cloud-init's cloud-config whose entries are parts of their own.
const (
	usersKey = "users"
	filesKey = "write_files"
)

// The remedies. Each fits what the most of the data consists of.
const (
	keysRemedy         = "Use Ed25519 keys, which have a tenth of the size of RSA-4096, or fewer users"
	usersRemedy        = "Make it smaller: remove users that no longer need access, or keys of them"
	certificatesRemedy = "Remove the certificates that are no longer needed"
	filesRemedy        = "Make the files smaller, or let the machine download them, as a CloudConfig's files of stage Managed are"
	otherRemedy        = "Make it smaller"
)

// Part is a part of compressed data.
type Part struct {
	Name string
	// Size is the size of the compressed part in bytes. It is an estimate, since parts that resemble each other add less.
	Size int
}

// part is an entry of a cloud-config, with what makes it smaller.
type part struct {
	Part
	remedy string
}

// NewPart returns a part with the size that its content has when compressed.
func NewPart(name string, content []byte) Part {
	if len(name) > nameLimit {
		name = name[:nameLimit] + "…"
	}
	return Part{Name: strings.ToValidUTF8(name, ""), Size: compressedSize(content)}
}

// Largest returns a sentence that names the largest parts with their sizes. It sorts the parts.
func Largest(parts []Part) string {
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name))
	})
	names := make([]string, 0, listed+1)
	rest := 0
	for i, p := range parts {
		if i < listed {
			names = append(names, fmt.Sprintf("%s (%d bytes)", p.Name, p.Size))
		} else {
			rest += p.Size
		}
	}
	if more := len(parts) - listed; more > 0 {
		names = append(names, fmt.Sprintf("%d more (%d bytes)", more, rest))
	}
	return "The largest parts when compressed: " + strings.Join(names, ", ")
}

// Explain returns which parts of a cloud-config are the largest, with their sizes when compressed, and how to make it smaller. It has
// names of users and paths of files, but nothing of their content. For data of other formats it has only the advice to make it smaller.
func Explain(data []byte) string {
	parts := partsOf(data)
	if len(parts) == 0 {
		return otherRemedy
	}
	bytesOf := map[string]int{}
	all := make([]Part, 0, len(parts))
	for _, p := range parts {
		bytesOf[p.remedy] += p.Size
		all = append(all, p.Part)
	}
	remedy := slices.MaxFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(bytesOf[a.remedy], bytesOf[b.remedy]), strings.Compare(a.remedy, b.remedy))
	}).remedy
	return Largest(all) + ". " + remedy
}

// partsOf returns the parts of a cloud-config; none if the data is not one.
func partsOf(data []byte) []part {
	config := map[string]any{}
	if !bytes.Contains(data, []byte("#cloud-config")) || yaml.Unmarshal(data, &config) != nil {
		return nil
	}
	var parts []part
	for key, value := range config {
		entries, isList := value.([]any)
		if !isList || (key != usersKey && key != filesKey) {
			parts = append(parts, newPart(key, otherRemedy, value))
			continue
		}
		for i, entry := range entries {
			parts = append(parts, newEntry(key, i, entry))
		}
	}
	return parts
}

// newEntry returns an entry of the users or the files, which is named by its number where it has no name.
func newEntry(key string, i int, entry any) part {
	fields, _ := entry.(map[string]any)
	text := func(field string) string {
		if s, _ := fields[field].(string); s != "" {
			return s
		}
		if s, _ := entry.(string); s != "" { // The image's user, "default".
			return s
		}
		return strconv.Itoa(i)
	}
	if key == usersKey {
		return newPart("user "+text("name"), usersRemedy, entry)
	}
	return newPart("file "+text("path"), filesRemedy, entry)
}

func newPart(name, remedy string, value any) part {
	content, err := yaml.Marshal(value)
	if err != nil {
		return part{Part: Part{Name: name}, remedy: remedy}
	}
	switch {
	case remedy == usersRemedy && bytes.Contains(content, []byte("ssh-rsa ")):
		remedy = keysRemedy
	case bytes.Contains(content, []byte("BEGIN CERTIFICATE")):
		remedy = certificatesRemedy
	}
	return part{Part: NewPart(name, content), remedy: remedy}
}

func compressedSize(content []byte) int {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return len(content)
	}
	_, writeErr := w.Write(content)
	if writeErr != nil || w.Close() != nil {
		return len(content)
	}
	return out.Len()
}
