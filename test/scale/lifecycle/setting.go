package lifecycle

import (
	"fmt"
	"strings"
)

// Setting is the kind of Cluster that the Machines belong to.
type Setting string

const (
	// First is a Cluster without references, whose initialization the harness sets.
	First Setting = "first"
	// Second is a Cluster with a control plane object that says that it is managed elsewhere.
	Second Setting = "second"
)

// ParseSettings reads a list such as "first,second".
func ParseSettings(list string) ([]Setting, error) {
	var settings []Setting
	for name := range strings.SplitSeq(list, ",") {
		switch s := Setting(strings.TrimSpace(name)); s {
		case First, Second:
			settings = append(settings, s)
		default:
			return nil, fmt.Errorf("no setting %q: there are %s and %s", s, First, Second)
		}
	}
	return settings, nil
}
