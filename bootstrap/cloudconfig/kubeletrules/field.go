package kubeletrules

// Type is the type of a field as JSON has it.
type Type string

// The types of fields. A kubelet reads no other: a number in the place of a string keeps it from starting.
const (
	boolean    Type = "boolean"
	integer    Type = "integer"
	number     Type = "number"
	text       Type = "string"
	path       Type = "path"       // absolute, or empty
	duration   Type = "duration"   // such as 1m30s; a kubelet reads 0s as unset
	quantity   Type = "quantity"   // such as 10Mi
	texts      Type = "strings"    // a list
	integers   Type = "integers"   // a list
	textMap    Type = "map"        // of strings
	quantities Type = "quantities" // a map of positive quantities by resource
	thresholds Type = "thresholds" // a map of quantities or percentages by eviction signal
	durations  Type = "durations"  // a map of durations by eviction signal
	gates      Type = "gates"      // a map of booleans by feature gate
	headers    Type = "headers"    // a map of lists
	list       Type = "list"       // of objects, whose fields are rows of their own
	looseInt   Type = "looseInt"   // an integer or a string
)

// Field is a row of the table: a field of KubeletConfiguration, and what is allowed in it.
type Field struct {
	// Path has the names of the objects around the field before it; [] stands for the elements of a list.
	Path string
	Type Type
	// Enum is the list of values, or of keys of a map.
	Enum []string
	// Pattern is a regular expression for the text, for each text of a list, or for each value of a map.
	Pattern string
	// Min and Max bound a number.
	Min, Max *int64
	// Since is the first minor version of the kubelet that has the field; empty for all that are supported.
	Since string
	// Gate is the feature gate that must be on for a value other than the zero value.
	Gate string
	// Fixed is the only value that is allowed; Why says the reason.
	Fixed any
	// Preset means that the controller writes the fixed value.
	Preset bool
	// Refused is the remedy when no value is allowed.
	Refused string
	// Why is the reason of Fixed.
	Why string
}

func row(path string, t Type) Field { return Field{Path: path, Type: t} }

func oneOf(path string, values ...string) Field { return Field{Path: path, Type: text, Enum: values} }

func atLeast(path string, least int64) Field { return Field{Path: path, Type: integer, Min: &least} }

func between(path string, least, most int64) Field {
	return Field{Path: path, Type: integer, Min: &least, Max: &most}
}

func like(path string, t Type, pattern string) Field {
	return Field{Path: path, Type: t, Pattern: pattern}
}

func refused(path string, t Type, remedy string) Field {
	return Field{Path: path, Type: t, Refused: remedy}
}

func fixed(path string, t Type, value any, why string) Field {
	return Field{Path: path, Type: t, Fixed: value, Why: why}
}

func (f Field) preset() Field { f.Preset = true; return f }

func (f Field) since(minor string) Field { f.Since = minor; return f }

func (f Field) gate(name string) Field { f.Gate = name; return f }
