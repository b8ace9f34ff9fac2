package driver

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Lineage is the part of an instance's mark that names the Cluster and the installation that have launched it, or last taken it over. An
// instance whose object no longer exists is ended only by the installation of its mark, see package orphans.
//
// As text it is <UID of the Cluster>_<ID of the installation>_<seconds since 1970, to the base of 36>: at most 63 characters, all of which
// every cloud accepts in a tag or a label.
type Lineage struct {
	// Cluster is the UID of the Cluster. It keeps apart management clusters whose objects have equal names, and changes with clusterctl move.
	Cluster types.UID
	// Installation is the ID of a management cluster in the record of its collector: random.
	Installation string
	// At is when the mark was written, by the clock of the process that wrote it, in whole seconds.
	At time.Time
}

// lineageText is the form of a lineage. It keeps out whatever a filter or a path takes for more than text.
var lineageText = regexp.MustCompile(`^([0-9a-z-]{1,40})_([0-9a-z]{1,14})_([0-9a-z]{1,7})$`)

// String returns the lineage as text.
func (l Lineage) String() string {
	return strings.ToLower(string(l.Cluster)) + "_" + l.Installation + "_" + strconv.FormatInt(l.At.Unix(), 36)
}

// ParseLineage returns the lineage of a text; ok is false if it is none.
func ParseLineage(text string) (l Lineage, ok bool) {
	parts := lineageText.FindStringSubmatch(text)
	if parts == nil {
		return Lineage{}, false
	}
	seconds, err := strconv.ParseInt(parts[3], 36, 64)
	if err != nil {
		return Lineage{}, false
	}
	return Lineage{Cluster: types.UID(parts[1]), Installation: parts[2], At: time.Unix(seconds, 0).UTC()}, true
}
