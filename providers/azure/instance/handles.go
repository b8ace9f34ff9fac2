package instance

import (
	"regexp"
	"strings"

	"millwright.dev/providers/driver"
)

// vmName is the form of names of virtual machines. None has a slash, and none is . or .. , so it stays one element of a path.
const vmName = `[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?`

var (
	namePattern = regexp.MustCompile(`^` + vmName + `$`)
	// idPattern is the form of provider IDs; what is not a name is not case-sensitive.
	idPattern = regexp.MustCompile(`^azure:///(?i:subscriptions)/([0-9A-Za-z-]+)/(?i:resourceGroups)/([A-Za-z0-9._()-]+)` +
		`/(?i:providers/Microsoft\.Compute/virtualMachines)/(` + vmName + `)$`)
)

// target is the name of the machine that a handle leads to; false if it can lead to nothing in the scope. Provider IDs and names may be
// forged.
func target(scope driver.Scope, h driver.Handle) (name string, ok bool) {
	if h.ProviderID == "" {
		return h.Name, namePattern.MatchString(h.Name)
	}
	id := idPattern.FindStringSubmatch(h.ProviderID)
	subscription, group := split(scope)
	if id == nil || !strings.EqualFold(id[1], subscription) || !strings.EqualFold(id[2], group) {
		return "", false
	}
	return id[3], true
}
