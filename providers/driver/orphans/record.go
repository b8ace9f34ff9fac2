package orphans

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// recordKey is the key of the ConfigMap under which the record stands.
const recordKey = "record"

// Bounds of the record.
const (
	maxGaps   = 100
	maxScopes = 200
	// keepScope is for how long a scope is listed in which nothing of ours has been seen.
	keepScope = 30 * 24 * time.Hour
)

// Record is what must outlast a process, so that orphans of this installation are distinguished from others. It is in a ConfigMap: a backup
// has it in the state of the objects that it has. Times are in seconds since 1970.
type Record struct {
	// Installation is the ID of this management cluster for marks. It is random.
	Installation string `json:"installation"`
	// Since is when the ID was created.
	Since int64 `json:"since"`
	// LastScan is when the latest scan began that was recorded; zero before the first.
	LastScan int64 `json:"lastScan,omitempty"`
	// Gaps are the times between a recorded scan and the next start of a process, the oldest first. Whatever was launched in one may have been
	// launched after the backup from which the API server was restored.
	Gaps []Gap `json:"gaps,omitempty"`
	// Scopes are those in which there may be something of ours, so that one is listed also after its last object was removed by force.
	Scopes []KnownScope `json:"scopes,omitempty"`
	// Clusters are those that are here.
	Clusters []KnownCluster `json:"clusters,omitempty"`
}

// Gap is a time of which no scan was recorded. Until does not belong to it.
type Gap struct {
	From  int64 `json:"from"`
	Until int64 `json:"until"`
}

// KnownScope is a driver.Scope in which something of ours was seen.
type KnownScope struct {
	Identity string `json:"identity,omitempty"`
	Location string `json:"location"`
	// Seen is when something of ours was last seen there, in seconds since 1970, to the hour.
	Seen int64 `json:"seen"`
}

func (k KnownScope) scope() driver.Scope {
	return driver.Scope{Identity: k.Identity, Location: k.Location}
}

// covers returns whether the object of what was marked at that time had certainly been in the state of the API server that has this record.
// Times are whole seconds, so the one in which the latest scan began does not count.
func (r Record) covers(at time.Time) bool {
	t := at.Unix()
	return t >= r.Since && t < r.LastScan && !slices.ContainsFunc(r.Gaps, func(g Gap) bool { return t >= g.From && t < g.Until })
}

// awaits returns whether the next scan will cover what was marked at that time.
func (r Record) awaits(at, now time.Time) bool {
	return at.Unix() >= r.latest() && !at.After(now.Add(clockSkew))
}

// latest is the latest time in the record, apart from scopes and Clusters.
func (r Record) latest() int64 {
	latest := max(r.Since, r.LastScan)
	if n := len(r.Gaps); n > 0 {
		latest = max(latest, r.Gaps[n-1].Until)
	}
	return latest
}

// started returns the record at the start of a process, or of another one over the record. What was launched since the latest recorded scan
// is never covered.
func (r Record) started(now time.Time) Record {
	if !installationText.MatchString(r.Installation) {
		r.Installation, r.Since, r.LastScan, r.Gaps = newInstallationID(), now.Unix(), 0, nil
		return r
	}
	gap := Gap{From: max(r.LastScan, r.Since), Until: max(now.Unix()+1, r.latest())} // The second of the start is part of it.
	r.Gaps = slices.Clone(r.Gaps)
	if n := len(r.Gaps); n > 0 && r.Gaps[n-1].Until >= gap.From {
		gap.From, r.Gaps = r.Gaps[n-1].From, r.Gaps[:n-1] // There was no scan since the latest start.
	}
	r.Gaps = append(r.Gaps, gap)
	for len(r.Gaps) > maxGaps { // What lies between the oldest is given up: its objects have their instances marked again.
		r.Gaps = slices.Replace(r.Gaps, 0, 2, Gap{From: r.Gaps[0].From, Until: r.Gaps[1].Until})
	}
	return r
}

// scanned returns the record after a scan that began at that time.
func (r Record) scanned(began time.Time) Record {
	r.LastScan = max(r.LastScan, began.Unix())
	return r
}

// saw returns the record with the scopes in which something of ours was seen, and without those where nothing was for long.
func (r Record) saw(scopes []driver.Scope, now time.Time) Record {
	hour := now.Truncate(time.Hour).Unix()
	seen := map[driver.Scope]int64{}
	for _, k := range r.Scopes {
		if now.Sub(time.Unix(k.Seen, 0)) < keepScope {
			seen[k.scope()] = k.Seen
		}
	}
	for _, s := range scopes {
		seen[s] = hour
	}
	r.Scopes = make([]KnownScope, 0, len(seen))
	for s, at := range seen {
		r.Scopes = append(r.Scopes, KnownScope{Identity: s.Identity, Location: s.Location, Seen: at})
	}
	slices.SortFunc(r.Scopes, func(a, b KnownScope) int {
		return cmp.Or(cmp.Compare(b.Seen, a.Seen), cmp.Compare(a.Identity, b.Identity), cmp.Compare(a.Location, b.Location))
	})
	r.Scopes = r.Scopes[:min(len(r.Scopes), maxScopes)]
	return r
}

func (r Record) encode() (string, error) {
	text, err := json.Marshal(r)
	return string(text), errors.Wrap(err, "encoding the record of the installation")
}

func decodeRecord(text string) (Record, error) {
	var r Record
	if text == "" {
		return r, nil
	}
	return r, errors.Wrap(json.Unmarshal([]byte(text), &r), "reading the record of the installation")
}

// installationText is the form of an ID that marks take.
var installationText = regexp.MustCompile(`^[0-9a-z]{1,14}$`)

// newInstallationID returns 12 random characters of those that marks take.
func newInstallationID() string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // It never fails.
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(random))[:12]
}
