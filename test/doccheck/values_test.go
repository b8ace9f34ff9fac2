package doccheck_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"millwright.dev/test/doccheck"
)

// The rows of a kind's fields name the values that the API accepts: all values of an enumeration and no others, the default, and no other
// limits than those of the definition.
func TestFieldRows_ValuesAreThoseOfTheAPI(t *testing.T) {
	for file, kind := range shipped(t) {
		if strings.HasSuffix(kind, "Template") {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			page := doccheck.Read(t, "docs/reference/"+strings.ToLower(kind)+".md")
			fields := doccheck.Schemas(t, file, "spec")
			for _, row := range page.Table(t, "") {
				for _, wrong := range wrongValues(row, fields) {
					t.Errorf("%s: %s", page.Path, wrong)
				}
			}
		})
	}
}

// What the check finds in rows that were once on a page.
func TestWrongValues_CloudConfigPage_FindsWhatTheAPIRefused(t *testing.T) {
	fields := doccheck.Schemas(t, "config/bootstrap/cloudconfig/crd/bootstrap.millwright.dev_cloudconfigs.yaml", "spec")
	for text, wrong := range map[string]bool{
		"| `files[].encoding` | how it is encoded: `Base64`, `Gzip` or `GzipBase64` | plain text |":          true,
		"| `files[].stage` | `Provision`: at the first boot; `Managed`: downloaded | `Managed` |":            true,
		"| `files[].stage` | `Boot`: at the first boot; `Managed`: downloaded | `Boot` |":                    true,
		"| `files[].stage` | `Boot`: at the first boot; `Managed`: downloaded | `Managed` |":                 false,
		"| `files[].content` | the content, at most 4096 characters | |":                                     true,
		"| `files[].content` | the content, at most 262,144 characters | |":                                  false,
		"| `agent.pollIntervalSeconds` | how often a machine looks for a change, from 7 to 3600 seconds | |": true,
	} {
		page := doccheck.Parse("x.md", []byte("| Field | Meaning | Unset |\n|---|---|---|\n"+text+"\n"))
		if found := wrongValues(page.Table(t, "")[0], fields); len(found) > 0 != wrong {
			t.Errorf("%s: %v", text, found)
		}
	}
}

// otherLimits are limits that are not in the schema of the field: of a list that it is in, or of the core's webhook.
var otherLimits = map[string]string{"assumeRoles[].roleARN": "5", "spec.checks.nodeStartupTimeoutSeconds": "30"}

// defaultColumns are the columns that have the value of a field that is unset.
var defaultColumns = []string{"Unset", "Default"}

// value is how pages write a value of an enumeration.
var value = regexp.MustCompile(`^[A-Z][A-Za-z0-9+_-]*$`)

func wrongValues(row map[string]doccheck.Cell, fields map[string]apiextensionsv1.JSONSchemaProps) (wrong []string) {
	var enum, limits []string
	names := row["Field"].Code
	for _, name := range names {
		schema, ok := fields[strings.TrimPrefix(name, "spec.")]
		if !ok {
			return nil // A field of the status, or one whose parts have rows of their own.
		}
		enum, limits = append(enum, enumOf(schema)...), append(limits, limitsOf(schema)...)
		if len(names) == 1 && schema.Default != nil {
			wrong = append(wrong, wrongDefault(row, name, string(schema.Default.Raw))...)
		}
	}
	var text, code []string
	for column, cell := range row {
		if column != "Field" {
			text, code = append(text, cell.Text), append(code, cell.Code...)
		}
	}
	for _, v := range enum {
		if !regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(v) + `($|[^A-Za-z0-9])`).MatchString(strings.Join(text, " ")) {
			wrong = append(wrong, fmt.Sprintf("%v lacks the value %s", names, v))
		}
	}
	for _, v := range code {
		if len(names) == 1 && len(enum) > 0 && value.MatchString(v) && !slices.Contains(enum, v) {
			wrong = append(wrong, fmt.Sprintf("%v has the value %s, which the API refuses; it accepts %v", names, v, enum))
		}
	}
	for _, limit := range limitsIn(strings.Join(text, " ")) {
		if len(names) == 1 && len(limits) > 0 && otherLimits[names[0]] != limit && !slices.Contains(limits, limit) {
			wrong = append(wrong, fmt.Sprintf("%v has the limit %s; the definition has %v", names, limit, limits))
		}
	}
	return wrong
}

func wrongDefault(row map[string]doccheck.Cell, name, raw string) []string {
	for _, column := range defaultColumns {
		if cell, ok := row[column]; ok && !strings.Contains(strings.ReplaceAll(cell.Text, ",", ""), strings.Trim(raw, `"`)) {
			return []string{fmt.Sprintf("%s has the default %q; the API's is %s", name, cell.Text, raw)}
		}
	}
	return nil
}

func enumOf(schema apiextensionsv1.JSONSchemaProps) (values []string) {
	if schema.Items != nil && schema.Items.Schema != nil {
		schema = *schema.Items.Schema
	}
	for _, raw := range schema.Enum {
		var text string
		if json.Unmarshal(raw.Raw, &text) == nil && text != "" {
			values = append(values, text)
		}
	}
	return values
}

// limitsOf are all limits of a field, and of the elements of a list.
func limitsOf(schema apiextensionsv1.JSONSchemaProps) (limits []string) {
	all := []apiextensionsv1.JSONSchemaProps{schema}
	if schema.Items != nil && schema.Items.Schema != nil {
		all = append(all, *schema.Items.Schema)
	}
	for _, s := range all {
		for _, n := range []*int64{s.MaxLength, s.MinLength, s.MaxItems, s.MinItems, s.MaxProperties} {
			if n != nil {
				limits = append(limits, fmt.Sprint(*n))
			}
		}
		for _, n := range []*float64{s.Minimum, s.Maximum} {
			if n != nil {
				limits = append(limits, fmt.Sprint(int64(*n)))
			}
		}
	}
	return limits
}

// limit is how pages write limits.
var limit = regexp.MustCompile(`(?:at most|at least|up to|no more than) ([0-9][0-9,]*)\b|\b([0-9][0-9,]*) to ([0-9][0-9,]*)\b`)

func limitsIn(text string) (limits []string) {
	for _, match := range limit.FindAllStringSubmatch(text, -1) {
		for _, number := range match[1:] {
			if number = strings.ReplaceAll(strings.TrimSuffix(number, ","), ",", ""); number != "" {
				limits = append(limits, number)
			}
		}
	}
	return limits
}
