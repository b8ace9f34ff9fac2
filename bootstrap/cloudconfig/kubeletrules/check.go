package kubeletrules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Problem is a field that a kubelet of a version refuses, or has no use for.
type Problem struct{ Field, Message string }

// Check returns what in a configuration depends on the version of the kubelet, which a CRD's schema cannot see: fields and feature
// gates that this version does not have, gates that are locked, and fields whose gate is off. It returns nil for a version
// that the table does not cover.
func Check(config map[string]any, version string) *Problem {
	index, minor := indexOf(version)
	if index < 0 {
		return nil
	}
	given, _ := config["featureGates"].(map[string]any)
	if problem := checkGates(given, index, minor); problem != nil {
		return problem
	}
	for _, f := range Fields() {
		value, ok := lookup(config, f.Path)
		if !ok || zero(value) {
			continue
		}
		if f.Since != "" && slices.Index(Versions, f.Since) > index {
			return &Problem{f.Path, fmt.Sprintf("is a field of kubelets from version %s on; the Machine's version is %s", f.Since, minor)}
		}
		if f.Gate != "" && (f.Path != "cpuCFSQuotaPeriod" || value != "100ms") && !enabled(given, f.Gate, index) {
			return &Problem{f.Path, fmt.Sprintf("needs the feature gate %s, which is off in version %s: set it in featureGates", f.Gate, minor)}
		}
	}
	if problem := checkOptions(config, given, index); problem != nil {
		return problem
	}
	return checkHiddenMetrics(config, index)
}

func checkGates(given map[string]any, index int, minor string) *Problem {
	states := gateStates()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		row, ok := states[name]
		if !ok || row[index] == "-" {
			return &Problem{"featureGates." + name, "is not known to kubelets of version " + minor + ", which do not start with it: remove it"}
		}
		if value, _ := given[name].(bool); (row[index] == "ON" && !value) || (row[index] == "OFF" && value) {
			return &Problem{"featureGates." + name, fmt.Sprintf("cannot be %t: version %s has it locked; remove it", value, minor)}
		}
	}
	return nil
}

// enabled reports whether a gate is on. AllAlpha and AllBeta are left out: a gate that is needed is to be named.
func enabled(given map[string]any, name string, index int) bool {
	if value, ok := given[name].(bool); ok {
		return value
	}
	row := gateStates()[name]
	return len(row) > index && strings.EqualFold(row[index], "on")
}

func checkHiddenMetrics(config map[string]any, index int) *Problem {
	const field = "showHiddenMetricsForVersion"
	given, _ := config[field].(string)
	var previous int
	if _, err := fmt.Sscanf(Versions[index], "1.%d", &previous); err != nil || given == "" {
		return nil
	}
	if want := fmt.Sprintf("1.%d", previous-1); given != want {
		return &Problem{field, fmt.Sprintf("must be %s, the minor version before the Machine's", want)}
	}
	return nil
}

// indexOf returns the place of a version such as v1.36.3 in Versions, and its minor version.
func indexOf(version string) (int, string) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	name := major + "." + minor
	return slices.Index(Versions, name), name
}

func lookup(config map[string]any, path string) (any, bool) {
	if strings.Contains(path, "[]") {
		return nil, false
	}
	var value any = config
	for _, name := range strings.Split(path, ".") {
		object, _ := value.(map[string]any)
		var ok bool
		if value, ok = object[name]; !ok {
			return nil, false
		}
	}
	return value, true
}

// zero reports whether a kubelet reads a value as unset.
func zero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == "" || strings.Trim(v, "0smhun") == ""
	case bool:
		return !v
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
