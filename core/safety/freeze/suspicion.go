package freeze

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
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
	return State{Reason: ReasonRestoreSuspected, Since: s.since, Until: until, Message: fmt.Sprintf(
		"No Machine is replaced until %s, since the management cluster seems to have been restored from a backup: %s. "+
			"Adopt or remove what has no Machine, then set the annotation %s of the Cluster",
		stamp(until), s.signs, UnfreezeAnnotation)}
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
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return what + ": " + text
}

// restorable reports whether a backup may have been restored before this process started: how long no core was at work is known, and
// more than a change of the leader takes. The time of the last renewal is that of the backup then.
func (f *Freezer) restorable() (since time.Time, ok bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	gap, known := f.start.gap()
	open := f.options.RestoreGrace > 0 && f.clock.Now().Before(f.start.at.Add(f.options.RestoreGrace))
	return f.start.last, known && gap > restoreGap && open
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
