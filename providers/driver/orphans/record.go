package orphans

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// recordKey is the key of the ConfigMap under which the record stands.
const recordKey = "record"

// Bounds of the record: what is older goes first.
const (
	maxEpochs = 100
	maxScopes = 200
	// keepScope is for how long a scope is listed in which nothing of ours has been seen.
	keepScope = 30 * 24 * time.Hour
)

// Record is what the installation must remember to distinguish its own orphans from others: it is in a ConfigMap, so that what restores an
// older state of the API server, or copies it, restores or copies the record with the objects.
type Record struct {
	// Epochs are the reigns of processes over the record, the oldest first.
	Epochs []Epoch `json:"epochs"`
	// Scopes are those in which there may be something of ours, so that one is listed also after its last object was removed by force.
	Scopes []KnownScope `json:"scopes,omitempty"`
	// Clusters are those that are here.
	Clusters []KnownCluster `json:"clusters,omitempty"`
	// Strays are instances that carry the mark of objects that were here, and the lineage of another owner.
	Strays []Stray `json:"strays,omitempty"`
}

// Epoch is one uninterrupted reign of a process over the record.
type Epoch struct {
	// ID is random.
	ID string `json:"id"`
	// From is when it began, in seconds since 1970.
	From int64 `json:"from"`
	// LastScan is until when all that it has marked had been in the API server, as a scan has found; zero before the first scan.
	LastScan int64 `json:"lastScan,omitempty"`
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

// epoch returns the epoch of that name.
func (r Record) epoch(id string) (Epoch, bool) {
	i := slices.IndexFunc(r.Epochs, func(e Epoch) bool { return e.ID == id })
	if i < 0 {
		return Epoch{}, false
	}
	return r.Epochs[i], true
}

// covers returns whether what was marked at that time had certainly been in the state of the API server that has this record. Times are
// whole seconds, so the one in which the scan began does not count.
func (e Epoch) covers(at time.Time) bool { return at.Unix() >= e.From && at.Unix() < e.LastScan }

// latest is the latest time in the epochs.
func (r Record) latest() int64 {
	var latest int64
	for _, e := range r.Epochs {
		latest = max(latest, e.From, e.LastScan)
	}
	return latest
}

// begun returns the record with a new epoch, which begins no earlier than those before it were last heard of. Those that have never
// completed a scan can prove nothing, and go.
func (r Record) begun(id string, now time.Time) Record {
	epoch := Epoch{ID: id, From: max(now.Unix(), r.latest())}
	epochs := slices.DeleteFunc(slices.Clone(r.Epochs), func(e Epoch) bool { return e.LastScan == 0 })
	r.Epochs = append(epochs, epoch)
	r.Epochs = r.Epochs[max(0, len(r.Epochs)-maxEpochs):]
	return r
}

// scanned returns the record after a scan that began at that time.
func (r Record) scanned(id string, began time.Time) Record {
	r.Epochs = slices.Clone(r.Epochs)
	for i := range r.Epochs {
		if e := &r.Epochs[i]; e.ID == id {
			e.LastScan = max(e.LastScan, began.Unix())
		}
	}
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
	return string(text), errors.Wrap(err, "encoding the record of lineages")
}

func decodeRecord(text string) (Record, error) {
	var r Record
	if text == "" {
		return r, nil
	}
	return r, errors.Wrap(json.Unmarshal([]byte(text), &r), "reading the record of lineages")
}
