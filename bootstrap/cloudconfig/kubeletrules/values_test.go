package kubeletrules_test

import (
	_ "embed" // the values
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
)

//go:embed testdata/values.yaml
var valuesFile []byte

// samples are what a field needs beside itself, and values that its type does not tell.
var samples = func() (out struct {
	Companions map[string]string
	Values     map[string][]string
}) {
	if err := yaml.UnmarshalStrict(valuesFile, &out); err != nil {
		panic(err)
	}
	return out
}()

// valuesOf returns values that the table allows for a field, in YAML: all of an enumeration, and the bounds of a number.
func valuesOf(f kubeletrules.Field) []string {
	if given, ok := samples.Values[f.Path]; ok {
		return given
	}
	var out []string
	switch f.Type {
	case "boolean":
		return []string{"true", "false"}
	case "integer":
		for _, bound := range []*int64{f.Min, f.Max} {
			if bound != nil {
				out = append(out, fmt.Sprint(*bound))
			}
		}
		return append(out, fmt.Sprint(deref(f.Min)+1))
	case "duration":
		return []string{"10s", "1h30m0s", "1.5s"}
	case "quantity":
		return []string{"10Mi", "1G"}
	case "strings":
		for _, value := range f.Enum {
			out = append(out, "["+value+"]")
		}
	case "quantities":
		return []string{"{" + strings.Join(f.Enum, ": '100', ") + ": '100'}", "{cpu: 100m, memory: 1.5Gi}"}
	case "thresholds":
		for _, signal := range f.Enum {
			out = append(out, "{"+signal+": 5%}", "{"+signal+": 100Mi}", "{"+signal+": 12.5%}")
		}
	case "durations":
		return []string{"{" + strings.Join(f.Enum, ": 1m30s, ") + ": 1m30s}"}
	case "path":
		return []string{"/etc/a"}
	default:
		if len(f.Enum) > 0 {
			return f.Enum
		}
		return []string{"/a"}
	}
	return out
}

func deref(value *int64) int64 {
	if value == nil {
		return 0
	}
	return *value
}

// sampleOf writes spec.kubelet with one field, and what it needs.
func sampleOf(f kubeletrules.Field, value string) string {
	config := value
	names := strings.Split(f.Path, ".")
	for i := len(names) - 1; i >= 0; i-- {
		config = "{" + names[i] + ": " + config + "}"
	}
	more := []string{samples.Companions[f.Path], samples.Companions[f.Path+"="+strings.Trim(value, "[]")]}
	if f.Gate != "" {
		more = append(more, "featureGates: {"+f.Gate+": true}")
	}
	for _, line := range more {
		if line != "" {
			signal, _, _ := strings.Cut(strings.Trim(value, "{}"), ":")
			config = strings.TrimSuffix(config, "}") + ", " + strings.ReplaceAll(line, "SIGNAL", signal) + "}"
		}
	}
	return "{config: " + config + "}"
}

// wrongValuesOf returns values that a kubelet refuses in a field, or reads as another type.
func wrongValuesOf(f kubeletrules.Field) []string {
	switch f.Type {
	case "boolean":
		return []string{"'true'", "1", "yes-please", "[true]"}
	case "integer":
		out := []string{"many", "'5'", "1.5", "[1]"}
		if f.Min != nil {
			out = append(out, fmt.Sprint(*f.Min-1))
		}
		if f.Max != nil {
			out = append(out, fmt.Sprint(*f.Max+1))
		}
		return out
	case "number":
		return []string{"half", "2", "0", "-0.5"}
	case "duration":
		return []string{"10", "10 seconds", "soon", "-5m", "1d", "''"}
	case "quantity":
		return []string{"10", "lots", "10 Mi", "10MB", "-1Gi"}
	case "strings", "integers", "list":
		return []string{"a", "{a: b}", "[{a: {b: c}}]"}
	case "quantities":
		return []string{"{cpu: 1}", "{memory: lots}", "{gpu: '1'}", "{cpu: '-1'}", "[cpu]"}
	case "thresholds":
		return []string{"{memory.available: lots}", "{memory.available: 101%}", "{memory.free: 5%}", "{memory.available: 5}",
			"{memory.available: -1Gi}",
			"{memory.available: 1Gb}", "{memory.available: ''}"}
	case "durations":
		return []string{"{memory.available: soon}", "{memory.free: 1m}", "{memory.available: 90}"}
	case "gates":
		return []string{"{NodeSwapp: true}", "{NodeSwap: 'true'}", "NodeSwap=true", "[NodeSwap]"}
	case "map", "headers":
		return []string{"{a: {b: c}}", "a", "[a]"}
	case "path":
		return []string{"relative/path", "5", "[/a]"}
	case "looseInt":
		return []string{"[1]", "{a: b}"}
	}
	out := []string{"5", "[a]", "{a: b}"}
	if len(f.Enum) > 0 {
		out = append(out, "nonsense", strings.ToUpper(f.Enum[0])+"X")
	}
	return out
}
