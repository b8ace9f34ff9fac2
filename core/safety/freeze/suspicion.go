package freeze

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
)

// restoreGap is how long no core must have been at work before missing objects are taken for signs of a restore: a backup is older
// than a change of the leader takes.
const restoreGap = time.Minute

// maxNamed is how many objects a message names.
const maxNamed = 5

// suspicion is that objects were lost by a restore from a backup.
type suspicion struct {
	// since is when it arose; zero while there is none.
	since time.Time
	// signs say what it rests on.
	signs string
}

func (s suspicion) state(now time.Time, grace time.Duration) State {
	until := s.since.Add(grace)
	if s.since.IsZero() || !now.Before(until) {
		return State{}
	}
	return State{Reason: RestoreSuspectedReason, Since: s.since, Until: until, Message: fmt.Sprintf(suspicionFormat, stamp(until), s.signs)}
}

// suspicionFormat says until when a suspicion holds, and what it rests on.
const suspicionFormat = "No Machine is replaced until %s, since the management cluster seems to have been restored from a backup: %s. " +
	"Adopt or remove what has no Machine, then set the annotation " + UnfreezeAnnotation + " of the Cluster"

// suspicionOf is the suspicion that the message of a state is about. It starts again if its end cannot be read, or is later than if it did:
// the flag may be shorter now, and others may write conditions.
func suspicionOf(message string, grace time.Duration, now time.Time) suspicion {
	parts := strings.SplitN(suspicionFormat, "%s", 3)
	message, _, _ = strings.Cut(message, "\n") // What follows is not of the suspicion.
	message = strings.TrimSuffix(strings.TrimPrefix(message, parts[0]), parts[2])
	text, signs, _ := strings.Cut(message, parts[1])
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return suspicion{since: now, signs: "a previous core has found signs of it"}
	}
	since := until.Add(-grace)
	if since.After(now) {
		since = now
	}
	return suspicion{since: since, signs: signs}
}

// UnfreezeAnnotation on a Cluster, with any value, ends a freeze that would end by itself: a grace, or the suspicion of a restore. The
// core removes it once it has done so.
const UnfreezeAnnotation = "safety.millwright.dev/unfreeze"

// signs describes objects that are there and should not be, or the other way round.
func signs(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return what + ": " + conditions.ListNames(names, maxNamed)
}

// looks reports whether a Cluster is to be looked at for signs of a restore.
type looks int

const (
	// notNeeded is what a Cluster needs that cannot have been restored before this process started, or not lately.
	notNeeded looks = iota
	// needed is what one needs that may have been.
	needed
	// awaited means that this is not known yet. Those who are notified by OnChange ask again.
	awaited
)

// restorable reports whether a backup may have been restored before this process started: no core was at work for more than a change of the
// leader takes, or it is not known. The time of the last renewal is that of the backup then; the zero time is any.
func (f *Freezer) restorable(key client.ObjectKey) (since time.Time, look looks) {
	f.begin(key)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	of := f.cluster(key)
	if of.unread || f.start.awaited != "" {
		return time.Time{}, awaited
	}
	start := f.startOf(of)
	begun := start.at
	if start.knownAt.After(begun) {
		begun = start.knownAt
	}
	gap, known := start.gap()
	if start.known && (!known || gap > restoreGap) && f.options.RestoreGrace > 0 && f.clock.Now().Before(begun.Add(f.options.RestoreGrace)) {
		return start.last, needed
	}
	return time.Time{}, notNeeded
}

// unexamined returns the Cluster, or all for a key without a name, that were not looked at for signs of a restore yet.
func (f *Freezer) unexamined(key client.ObjectKey) (keys []client.ObjectKey) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for cluster, of := range f.clusters {
		if !of.examined && (cluster == key || key.Name == "") {
			keys = append(keys, cluster)
		}
	}
	return keys
}

// Examined takes in what a Cluster was examined with: signs of a restore, or none.
func (f *Freezer) examined(key client.ObjectKey, found string) {
	f.mutex.Lock()
	of := f.cluster(key)
	changed := !of.examined || found != "" && of.restored.since.IsZero()
	of.examined = true
	if found != "" {
		if of.restored.since.IsZero() {
			of.restored.since = f.clock.Now()
		}
		of.restored.signs = found
	}
	f.mutex.Unlock()
	if changed {
		f.changed(key)
	}
}
