package ec2

import (
	"slices"
	"strings"

	"millwright.dev/test/clouds/simulator"
)

// filter is one Filter.N of a describe call: a resource passes when any of its values for the name
// matches any of the filter's. Several filters must all pass. Names and values are case-sensitive.
type filter struct {
	name   string
	values []string
}

// filterTable names the filters of a describe call: each gives a resource's values for it.
type filterTable[T any] map[string]func(T) []string

// maxFilterValues is the limit of values in one request.
const maxFilterValues = 200

func parseFilters(p params) ([]filter, error) {
	var out []filter
	total := 0
	for _, item := range p.list("Filter") {
		f := filter{name: item["Name"], values: item.strings("Value")}
		if f.name == "" {
			return nil, missingParameter("Filter.Name")
		}
		if len(f.values) == 0 {
			return nil, fail("InvalidParameterValue", "The filter '%s' has no values", f.name)
		}
		total += len(f.values)
		out = append(out, f)
	}
	if total > maxFilterValues {
		return nil, fail("FilterLimitExceeded", "The maximum number of filter values specified on a single call is %d", maxFilterValues)
	}
	return out, nil
}

// selectBy keeps the items that pass all filters. tags gives an item's tags for tag:<key> and tag-key.
func selectBy[T any](items []T, filters []filter, table filterTable[T], tags func(T) map[string]string) ([]T, error) {
	tests := make([]func(T) bool, 0, len(filters))
	for _, f := range filters {
		values, err := valuesOf(f.name, table, tags)
		if err != nil {
			return nil, err
		}
		tests = append(tests, func(item T) bool { return matchAny(values(item), f.values) })
	}
	var out []T
	for _, item := range items {
		if !slices.ContainsFunc(tests, func(test func(T) bool) bool { return !test(item) }) {
			out = append(out, item)
		}
	}
	return out, nil
}

func valuesOf[T any](name string, table filterTable[T], tags func(T) map[string]string) (func(T) []string, error) {
	if key, ok := strings.CutPrefix(name, "tag:"); ok && tags != nil {
		return func(item T) []string {
			if v, ok := tags(item)[key]; ok {
				return []string{v}
			}
			return nil
		}, nil
	}
	if name == "tag-key" && tags != nil {
		return func(item T) []string {
			var keys []string
			for k := range tags(item) {
				keys = append(keys, k)
			}
			return keys
		}, nil
	}
	if values, ok := table[name]; ok {
		return values, nil
	}
	return nil, fail("InvalidParameterValue", "The filter '%s' is invalid", name)
}

func matchAny(values, patterns []string) bool {
	return slices.ContainsFunc(values, func(v string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return simulator.Wildcard(p, v) })
	})
}

func contains(list []string, s string) bool { return slices.Contains(list, s) }
