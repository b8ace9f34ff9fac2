package orphans

import (
	"regexp"
	"strconv"
	"strings"

	"millwright.dev/providers/driver"
)

// tokenText is the form of the token of a launch, and shortenedText that of a name of which the end is a hash.
var (
	tokenText     = regexp.MustCompile(`^mw-[0-9a-f]{40}-([1-9][0-9]{0,8})$`)
	shortenedText = regexp.MustCompile(`-[0-9a-f]{10}$`)
)

// launched returns whether an instance of the Cluster has the token, and in clouds of names the name, that a launch for the object of its
// mark has. A user who launches an instance like ours copies the marks; the token of a launch is not copied with tags, and no two
// instances have the same name. What was left behind cannot be recognized: it has neither.
func (w *World) launched(f Found, cluster Cluster) bool {
	if f.Kind != kindInstance {
		return true
	}
	attempt := tokenText.FindStringSubmatch(f.Token)
	if attempt == nil {
		return false
	}
	owner := f.Owner
	if namespaceOf(owner) == "" {
		// Of a digest the name of the instance may show the name. The end of a shortened name does not.
		if owner = cluster.Namespace + "/" + f.Name; driver.OwnerDigest(owner) != f.Owner {
			return w.NameLimit == 0 || shortenedText.MatchString(f.Name)
		}
	}
	if strings.Contains(owner, ":") {
		return true // It was cut, and the token follows from the whole.
	}
	n, err := strconv.Atoi(attempt[1])
	_, name, _ := strings.Cut(owner, "/")
	return err == nil && f.Token == driver.Token(owner, f.OwnerUID, n) && (w.NameLimit == 0 || f.Name == driver.Name(name, w.NameLimit))
}
