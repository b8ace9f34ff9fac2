// Package naming makes the names of Machines from spec.machineNaming.template. Admission and the controllers use it alike,
// and anyone who may write a MachineSet writes the template: it is worked out in the core's own process, which nothing in it
// may keep busy or fill the memory of.
package naming

import (
	"fmt"
	"strings"
	"text/template"
)

const (
	// MaxLength lets the name serve as a label value and a host name.
	MaxLength = 63
	// RandomLength is the length of {{ .random }}: there are 27 letters, so one name in 14 million collides, and the API
	// server refuses that one.
	RandomLength = 5
)

// Template is a template for names that is known to come to an end soon.
type Template struct{ parsed *template.Template }

// Parse reads a template. The error is what is wrong with it.
func Parse(text string) (*Template, error) {
	parsed, err := template.New("name").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, err
	}
	if len(parsed.Templates()) > 1 || parsed.Tree == nil {
		return nil, fmt.Errorf("define and block are not allowed in it: %s", allowed)
	}
	if err := checkNode(parsed.Root); err != nil {
		return nil, err
	}
	return &Template{parsed}, nil
}

// Make executes the template.
func (t *Template) Make(cluster, machineSet, random string) (string, error) {
	name := &strings.Builder{}
	err := t.parsed.Execute(name, map[string]any{
		"cluster":    map[string]any{"name": cluster},
		"machineSet": map[string]any{"name": machineSet},
		"random":     random,
	})
	return name.String(), err
}

// Cut shortens a name that is too long, so that its end stays random.
func Cut(name, random string) string {
	if len(name) > MaxLength {
		return name[:MaxLength-len(random)] + random
	}
	return name
}
