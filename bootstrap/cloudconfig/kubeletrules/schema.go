package kubeletrules

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

const (
	durationPattern = `(0|([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+)`
	unitPattern     = `(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?[0-9]+)?$`
	quantityPattern = `^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)` + unitPattern
	// A quantity above zero.
	somePattern    = `^[+]?(0*[1-9][0-9]*([.][0-9]*)?|0*[.]0*[1-9][0-9]*)` + unitPattern
	boolPattern    = `^(1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)$`
	percentPattern = `^([0-9]{1,2}([.][0-9]+)?|100)%$`
	reclaimPattern = `^(100|0*[1-9][0-9]?([.][0-9]+)?|0?[.]0*[1-9][0-9]*)%$|` + quantityPattern
	// The bounds keep the API server's estimate of what the rules cost within its limit.
	maxText, maxItems, maxNUMANodes = 256, 64, 32
)

// Schema returns the schema of spec.kubelet.config. Fields that are not in the table are not in it: a client that validates, as
// kubectl and server-side apply do, is told of them.
func Schema(description string) apiextensionsv1.JSONSchemaProps {
	root := object()
	root.Description = description
	for _, f := range Fields() {
		add(&root, strings.Split(strings.ReplaceAll(f.Path, "[]", ".[]"), "."), f.schema())
	}
	for _, r := range slices.Concat(rules, managerRules) {
		root.XValidations = append(root.XValidations, apiextensionsv1.ValidationRule{Rule: r.rule, Message: r.message})
	}
	return root
}

func object() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
}

// add puts the schema of a field at its path, with the objects around it.
func add(parent *apiextensionsv1.JSONSchemaProps, names []string, leaf apiextensionsv1.JSONSchemaProps) {
	if names[0] == "[]" {
		items := parent.Items.Schema
		if items.Properties == nil {
			items.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		}
		add(items, names[1:], leaf)
		items.Required = append(items.Required, names[1])
		return
	}
	if len(names) == 1 {
		parent.Properties[names[0]] = leaf
		return
	}
	child, ok := parent.Properties[names[0]]
	if !ok {
		child = object()
	}
	add(&child, names[1:], leaf)
	parent.Properties[names[0]] = child
}

func (f Field) schema() apiextensionsv1.JSONSchemaProps {
	s := f.typeSchema()
	s.Description = f.description()
	switch {
	case f.Refused != "":
		s.XValidations = []apiextensionsv1.ValidationRule{{Rule: "false", Message: "cannot be set: " + f.Refused}}
	case f.Fixed != nil:
		value, _ := json.Marshal(f.Fixed)
		s.XValidations = []apiextensionsv1.ValidationRule{{
			Rule: "self == " + string(value), Message: fmt.Sprintf("must be %v: %s", f.Fixed, f.Why),
		}}
	}
	return s
}

// description returns what kubectl explain shows beside the type; the fields themselves are Kubernetes' own.
func (f Field) description() string {
	var out string
	if f.Since != "" {
		out = "Kubelets have it from version " + f.Since + " on. "
	}
	if f.Gate != "" {
		out += "It needs the feature gate " + f.Gate + "."
	}
	return strings.TrimSpace(out)
}

func (f Field) typeSchema() apiextensionsv1.JSONSchemaProps {
	switch f.Type {
	case boolean, number:
		return apiextensionsv1.JSONSchemaProps{Type: string(f.Type)}
	case integer:
		return f.integerSchema()
	case looseInt:
		return apiextensionsv1.JSONSchemaProps{XIntOrString: true}
	case texts:
		return listOf(f.textSchema())
	case integers:
		return listOf(apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"})
	case list:
		items := apiextensionsv1.JSONSchemaProps{Type: "object"}
		if f.Refused != "" {
			items.XPreserveUnknownFields = ptr.To(true)
		}
		if f.Path == "reservedMemory" {
			return mapList(listOf(items), "numaNode")
		}
		return listOf(items)
	case textMap, quantities, thresholds, durations, gates, headers:
		return f.mapSchema()
	default:
		return f.textSchema()
	}
}

func (f Field) integerSchema() apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	if f.Min != nil {
		s.Minimum = ptr.To(float64(*f.Min))
	}
	if f.Max != nil {
		s.Maximum = ptr.To(float64(*f.Max))
	}
	return s
}

func (f Field) textSchema() apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To(int64(maxText)), Pattern: f.Pattern}
	switch f.Type {
	case path:
		s.Pattern = `^$|^/`
	case duration:
		s.Pattern = "^" + durationPattern + "$"
	case quantity:
		s.Pattern = quantityPattern
	}
	for _, value := range f.Enum {
		s.Enum = append(s.Enum, jsonText(value))
	}
	return s
}

func jsonText(value string) apiextensionsv1.JSON {
	raw, _ := json.Marshal(value)
	return apiextensionsv1.JSON{Raw: raw}
}

// mapList makes a list of objects a map by one of their fields.
func mapList(s apiextensionsv1.JSONSchemaProps, key string) apiextensionsv1.JSONSchemaProps {
	s.XListType, s.XListMapKeys, s.MaxItems = ptr.To("map"), []string{key}, ptr.To(int64(maxNUMANodes))
	return s
}

func listOf(items apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{
		Type: "array", MaxItems: ptr.To(int64(maxItems)), XListType: ptr.To("atomic"),
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items},
	}
}

// mapSchema returns the schema of a map. The names of its keys are held by a rule, which can name the wrong one.
func (f Field) mapSchema() apiextensionsv1.JSONSchemaProps {
	value := apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To(int64(maxText)), Pattern: f.Pattern}
	keys, length := "["+quoted(f.Enum)+"]", maxItems
	switch f.Type {
	case gates:
		value = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
		keys, length = "["+quoted(GateNames())+"]", maxItems
	case headers:
		value = listOf(apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr.To(int64(1024))})
		keys = ""
	case quantities:
		value.Pattern = quantityPattern
		if f.Pattern != "" {
			value.Pattern = somePattern
		}
	case thresholds:
		if f.Pattern == "" {
			value.Pattern = percentPattern + "|" + somePattern
		}
	case durations:
		value.Pattern = "^" + durationPattern + "$"
	}
	s := apiextensionsv1.JSONSchemaProps{
		Type: "object", MaxProperties: ptr.To(int64(length)),
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value},
	}
	switch {
	case f.Type == quantities && f.Pattern != "":
		s.XValidations = []apiextensionsv1.ValidationRule{{
			Rule: fmt.Sprintf("self.all(k, k.matches('%s'))", f.Pattern), Message: "each key must match " + f.Pattern,
		}}
	case keys != "" && keys != "[]":
		s.XValidations = []apiextensionsv1.ValidationRule{{Rule: fmt.Sprintf("self.all(k, k in %s)", keys), Message: f.unknownKey()}}
	}
	return s
}

func (f Field) unknownKey() string {
	if f.Type == gates {
		return "each key must be a feature gate that kubelets of versions " + strings.Join(Versions, ", ") + " know"
	}
	return "each key must be one of " + strings.Join(f.Enum, ", ")
}

func quoted(words []string) string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(word) {
			panic("kubeletrules: " + word + " cannot be in a rule")
		}
		out = append(out, "'"+word+"'")
	}
	return strings.Join(out, ",")
}
