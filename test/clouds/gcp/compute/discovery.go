package compute

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// discoveryJSON is what the discovery document of Compute Engine, compute-api.json of google.golang.org/api/compute/v1, says of the forms
// of the requests that are simulated: names, types, formats, patterns and enumerations, without its texts.
//
//go:embed discovery.json
var discoveryJSON []byte

// schema is the form of a value.
type schema struct {
	Type, Format, Pattern string
	Enum                  []string
	Ref                   string `json:"$ref"`
	Items                 *schema
	AdditionalProperties  *schema
	Properties            map[string]*schema
}

type discovery struct {
	Revision string
	Schemas  map[string]*schema
	Methods  map[string]struct {
		Request    string
		Parameters map[string]*schema
	}
}

var readDiscovery = sync.OnceValue(func() (d discovery) {
	if err := json.Unmarshal(discoveryJSON, &d); err != nil {
		panic(err) // The file is part of the package.
	}
	return d
})

// checkForm refuses a request that does not have the form that the discovery document gives.
func checkForm(method string, query url.Values, path func(string) string, body []byte) error {
	d := readDiscovery()
	m, known := d.Methods[method]
	if !known {
		return nil
	}
	for name, form := range m.Parameters {
		values := query[name]
		if v := path(name); v != "" {
			values = append(values, v)
		}
		for _, v := range values {
			if form.Pattern != "" && !whole(form.Pattern).MatchString(v) {
				return fail(http.StatusBadRequest, "badRequest", "Invalid value '%s'. Values must match the following regular expression: '%s'",
					v, form.Pattern)
			}
		}
	}
	if m.Request == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return fail(http.StatusBadRequest, "badRequest", "Invalid JSON payload received. %v", err)
	}
	return d.check("resource", d.Schemas[m.Request], v)
}

// check compares a value with its form.
func (d discovery) check(field string, form *schema, v any) error {
	if form.Ref != "" {
		form = d.Schemas[form.Ref]
	}
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		return d.checkObject(field, form, v)
	case []any:
		if form.Type != "array" {
			return badPayload(field, "Starting an array on a scalar or object field")
		}
		for i, item := range v {
			if err := d.check(fmt.Sprintf("%s[%d]", field, i), form.Items, item); err != nil {
				return err
			}
		}
		return nil
	}
	return checkScalar(field, form, v)
}

func (d discovery) checkObject(field string, form *schema, v map[string]any) error {
	if form.Type != "object" {
		return badPayload(field, "Starting an object on a scalar or array field")
	}
	for name, value := range v {
		inner := form.Properties[name]
		if inner == nil {
			inner = form.AdditionalProperties
		}
		if inner == nil {
			return badPayload(field, fmt.Sprintf("Unknown name %q: Cannot find field", name))
		}
		if err := d.check(field+"."+name, inner, value); err != nil {
			return err
		}
	}
	return nil
}

// checkScalar takes numbers of 64 bits as strings as well, as JSON of the API does.
func checkScalar(field string, form *schema, v any) error {
	text, _ := v.(string)
	_, isBool := v.(bool)
	number, isNumber := v.(float64)
	switch form.Type {
	case "boolean":
		if !isBool {
			return badPayload(field, "Invalid value (TYPE_BOOL)")
		}
	case "integer", "number":
		if !isNumber && !integer(text) || form.Format == "int32" && (number > 1<<31-1 || number < -1<<31) {
			return badPayload(field, "Invalid value (TYPE_INT32)")
		}
	case "string":
		return checkText(field, form, v)
	default:
		return badPayload(field, "Expected an "+form.Type)
	}
	return nil
}

func checkText(field string, form *schema, v any) error {
	text, isText := v.(string)
	_, isNumber := v.(float64)
	switch {
	case (form.Format == "int64" || form.Format == "uint64") && (isNumber || integer(text)):
	case form.Format == "int64", form.Format == "uint64":
		return badPayload(field, "Invalid value (TYPE_INT64)")
	case !isText:
		return badPayload(field, "Invalid value (TYPE_STRING)")
	case len(form.Enum) > 0 && !slices.Contains(form.Enum, text):
		return invalid(field, text, "Unknown value of the enumeration.")
	case form.Pattern != "" && text != "" && !whole(form.Pattern).MatchString(text):
		return invalid(field, text, "Must be a match of regex '%s'", form.Pattern)
	}
	return nil
}

func integer(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

func badPayload(field, message string) error {
	return fail(http.StatusBadRequest, "badRequest", "Invalid JSON payload received. %s at '%s'.", message, field)
}

var patterns sync.Map

// whole is a pattern that matches whole texts.
func whole(pattern string) *regexp.Regexp {
	if known, ok := patterns.Load(pattern); ok {
		return known.(*regexp.Regexp)
	}
	compiled := regexp.MustCompile("^(?:" + pattern + ")$")
	patterns.Store(pattern, compiled)
	return compiled
}
