package report

import (
	"encoding/json"
	"slices"

	"github.com/pkg/errors"
	"sigs.k8s.io/yaml"
)

// Format is a format of a report, and the extension of its file.
type Format string

// The formats. YAML and JSON can be decoded.
const (
	YAML     Format = "yaml"
	JSON     Format = "json"
	Markdown Format = "md"
	JUnit    Format = "xml"
)

// Formats returns all formats.
func Formats() []Format { return []Format{YAML, JSON, Markdown, JUnit} }

// ParseFormat returns the format of a name or of an extension.
func ParseFormat(name string) (Format, error) {
	switch name {
	case "yml":
		return YAML, nil
	case "markdown":
		return Markdown, nil
	case "junit":
		return JUnit, nil
	}
	if !slices.Contains(Formats(), Format(name)) {
		return "", errors.Errorf("%q is not a format: set yaml, json, markdown or junit", name)
	}
	return Format(name), nil
}

// Encode writes the report in the format.
func (r *Report) Encode(format Format) ([]byte, error) {
	switch format {
	case YAML:
		data, err := yaml.Marshal(r)
		return data, errors.Wrap(err, "encode report")
	case JSON:
		data, err := json.MarshalIndent(r, "", "  ")
		return append(data, '\n'), errors.Wrap(err, "encode report")
	case Markdown:
		return r.markdown(), nil
	case JUnit:
		return r.junit()
	}
	return nil, errors.Errorf("%q is not a format", format)
}

// Decode reads a report from YAML or JSON. Unknown fields and other versions are errors.
func Decode(data []byte) (*Report, error) {
	r := &Report{}
	if err := yaml.UnmarshalStrict(data, r); err != nil {
		return nil, errors.Wrap(err, "decode report")
	}
	if r.APIVersion != APIVersion || r.Kind != Kind {
		return nil, errors.Errorf("decode report: it is a %s of %s, not a %s of %s", r.Kind, r.APIVersion, Kind, APIVersion)
	}
	return r, nil
}
