package driver

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Lineage records by which installation an instance was launched, or last taken over: which Cluster of which API server it belongs to, and
// under which uninterrupted reign of a process over its record. An instance whose object no longer exists is ended only by an installation
// that can show that both are its own, see package orphans.
//
// As text it is <UID of the Cluster>_<epoch>_<seconds since 1970, to the base of 36>: at most 63 characters, of which every cloud takes
// all in a tag or a label.
type Lineage struct {
	// Cluster is the UID of the Cluster. It keeps apart management clusters whose objects have equal names, and changes with clusterctl move.
	Cluster types.UID
	// Epoch is the name of a reign: random, and never used again. It keeps apart management clusters of which one is a copy of the other.
	Epoch string
	// At is when the mark was written, by the clock of the process that wrote it, in whole seconds.
	At time.Time
}

// lineageText is the form of a lineage. It keeps out whatever a filter or a path takes for more than text.
var lineageText = regexp.MustCompile(`^([0-9a-z-]{1,40})_([0-9a-z]{1,14})_([0-9a-z]{1,7})$`)

// String returns the lineage as text.
func (l Lineage) String() string {
	return strings.ToLower(string(l.Cluster)) + "_" + l.Epoch + "_" + strconv.FormatInt(l.At.Unix(), 36)
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
	return Lineage{Cluster: types.UID(parts[1]), Epoch: parts[2], At: time.Unix(seconds, 0).UTC()}, true
}
