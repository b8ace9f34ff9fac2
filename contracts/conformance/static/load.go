package static

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// maxSize bounds a file: manifests of large providers have some 5 MiB.
const maxSize = 64 << 20

// Stdin is the path of standard input.
const Stdin = "-"

// File is a file of manifests.
type File struct {
	// Path as it was given; Stdin for standard input.
	Path string
	// Raw is what was read.
	Raw []byte
	// Objects are its documents, in their order.
	Objects []*unstructured.Unstructured
}

// Source has the paths of a release's files.
type Source struct {
	// Components, Metadata and Templates are files, or Stdin. ClusterClasses among Templates are recognized by their names.
	Components, Templates []string
	Metadata              string
	// Release is the version of the release, such as v1.2.3, if it is known.
	Release string
	// Whole is true if these are all files of the release, so that an absent one is missing.
	Whole bool
	// Stdin is read for the path "-"; standard input if it is nil.
	Stdin io.Reader
}

// Load reads files and directories, in which metadata.yaml, cluster-template*.yaml and clusterclass-*.yaml are recognized by their names
// and other YAML files are components. A directory is a whole release.
func Load(paths ...string) (*Bundle, error) { return LoadFrom(os.Stdin, paths...) }

// LoadFrom is Load with another standard input.
func LoadFrom(stdin io.Reader, paths ...string) (*Bundle, error) {
	source := Source{Stdin: stdin}
	for _, path := range paths {
		info, err := os.Stat(path)
		if path == Stdin || err == nil && !info.IsDir() {
			source.add(path)
			continue
		}
		if err != nil {
			return nil, errors.Wrap(err, "load manifests")
		}
		source.Whole = true
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, errors.Wrap(err, "load manifests")
		}
		for _, entry := range entries {
			if ending := filepath.Ext(entry.Name()); !entry.IsDir() && (ending == ".yaml" || ending == ".yml") {
				source.add(filepath.Join(path, entry.Name()))
			}
		}
	}
	return source.Load()
}

func (s *Source) add(path string) {
	base := filepath.Base(path)
	switch {
	case base == "metadata.yaml":
		s.Metadata = path
	case strings.HasPrefix(base, "cluster-template"), strings.HasPrefix(base, "clusterclass-"):
		s.Templates = append(s.Templates, path)
	default:
		s.Components = append(s.Components, path)
	}
}

// Load reads the files. Components are required.
func (s Source) Load() (*Bundle, error) {
	bundle, err := s.Files()
	if err == nil && len(bundle.objects()) == 0 {
		return nil, errors.New("load manifests: there is no object in the components; set the file that clusterctl would install")
	}
	return bundle, err
}

// Files reads the files.
func (s Source) Files() (*Bundle, error) {
	bundle := &Bundle{Release: s.Release, Whole: s.Whole}
	for _, path := range s.Components {
		file, err := s.read(path)
		if err != nil {
			return nil, err
		}
		bundle.Components = append(bundle.Components, file)
	}
	if s.Metadata != "" {
		file, err := s.read(s.Metadata)
		if err != nil {
			return nil, err
		}
		bundle.Metadata = &file
	}
	for _, path := range s.Templates {
		file, err := s.read(path)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(path)
		if strings.HasPrefix(base, "clusterclass-") || !strings.HasPrefix(base, "cluster-template") && isClass(file) {
			bundle.Classes = append(bundle.Classes, file)
		} else {
			bundle.Templates = append(bundle.Templates, file)
		}
	}
	return bundle, nil
}

// isClass recognizes a ClusterClass in a file of another name: it has no Cluster. A file named as a template is one, whatever its
// content: clusterctl treats it as a flavor, replaces its variables, and never looks for a ClusterClass there.
func isClass(file File) bool {
	has := func(kind string) bool {
		return slices.ContainsFunc(file.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	}
	return has("ClusterClass") && !has("Cluster")
}

func (s Source) read(path string) (File, error) {
	var in io.Reader = os.Stdin
	if s.Stdin != nil {
		in = s.Stdin
	}
	if path != Stdin {
		opened, err := os.Open(path)
		if err != nil {
			return File{}, errors.Wrap(err, "load manifests")
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	switch {
	case err != nil:
		return File{}, errors.Wrapf(err, "load manifests: read %s", path)
	case len(raw) > maxSize:
		return File{}, errors.Errorf("load manifests: %s has more than %d MiB", path, maxSize>>20)
	}
	return Parse(path, raw)
}

var separator = regexp.MustCompile(`(?m)^---[ \t]*(#.*)?\r?$`)

// Parse reads the documents of a file. Lists are expanded.
func Parse(path string, raw []byte) (File, error) {
	file := File{Path: path, Raw: raw}
	for i, document := range separator.Split(string(raw), -1) {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			// Some templates are YAML only after clusterctl has replaced variables.
			content = map[string]any{}
			if yaml.Unmarshal([]byte(withDefaults(document)), &content) != nil {
				return File{}, errors.Wrapf(err, "load manifests: document %d of %s", i+1, path)
			}
		}
		if len(content) == 0 {
			continue
		}
		object := &unstructured.Unstructured{Object: content}
		if object.GetKind() == "" || object.GetAPIVersion() == "" {
			return File{}, errors.Errorf("load manifests: document %d of %s has no apiVersion or kind", i+1, path)
		}
		if err := file.addObject(object); err != nil {
			return File{}, errors.Wrapf(err, "load manifests: document %d of %s", i+1, path)
		}
	}
	return file, nil
}

// addObject adds an object, or those of a list: a List of any kind, or one of a single kind, whose items may omit theirs.
func (f *File) addObject(object *unstructured.Unstructured) error {
	items, isList := object.Object["items"].([]any)
	kind, ofKind := strings.CutSuffix(object.GetKind(), "List")
	if !ofKind || !isList {
		f.Objects = append(f.Objects, object)
		return nil
	}
	for i, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return errors.Errorf("item %d of the %s is not an object", i+1, object.GetKind())
		}
		inner := &unstructured.Unstructured{Object: content}
		if kind != "" && inner.GetKind() == "" && inner.GetAPIVersion() == "" {
			inner.SetAPIVersion(object.GetAPIVersion())
			inner.SetKind(kind)
		}
		if inner.GetKind() == "" || inner.GetAPIVersion() == "" {
			return errors.Errorf("item %d of the %s has no apiVersion or kind", i+1, object.GetKind())
		}
		if err := f.addObject(inner); err != nil {
			return err
		}
	}
	return nil
}

// variable matches a variable of envsubst; the groups are name and default.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[=-]([^{}]*))?[^{}]*\}`)

// withDefaults replaces variables by their defaults, those without by their names.
func withDefaults(text string) string {
	return string(variable.ReplaceAllFunc([]byte(text), func(found []byte) []byte {
		parts := variable.FindSubmatch(found)
		if value := bytes.Trim(parts[2], `"`); len(value) > 0 {
			return value
		}
		return parts[1]
	}))
}
