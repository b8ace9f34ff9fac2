package instance

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

const (
	// viewsPerList is how many machines at most a list asks about why they have failed, one after the other, within the time and the turn
	// of one call. The others are what they were last known to be until a later list.
	viewsPerList = 10
	// viewsTime is how long a list waits for them: it is right without.
	viewsTime = 10 * time.Second
	// viewAgain is after what time it is asked again about a failed machine whose power may come back.
	viewAgain = time.Minute
	// settled is the age from which a machine is taken for one that has run, if nothing else is known of it: later than launches end.
	settled = time.Duration(driverv1.DefaultLaunchTimeoutSeconds) * time.Second
)

// failures remembers what the lists of machines do not say of those that have failed, so that it is asked once.
type failures struct {
	mu     sync.Mutex
	scopes map[driver.Scope]map[string]failure
}

// failure is what is known of a machine that is listed as failed, or may be one day.
type failure struct {
	// view is the last run time status that said something.
	view view
	// asked is when it was last asked for; zero for never.
	asked time.Time
	// before is the state that the machine was listed with before it failed; empty if that is not known.
	before driverv1.InstanceState
}

func newFailures() *failures { return &failures{scopes: map[driver.Scope]map[string]failure{}} }

func (f *failures) of(scope driver.Scope, vmID string) failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scopes[scope][vmID]
}

// note remembers an answer about a machine. One that says nothing, and none, leave what was known before.
func (f *failures) note(scope driver.Scope, vmID string, v view, now time.Time) failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.scopes[scope][vmID]
	if known.asked = now; v.complete() {
		known.view = v
	}
	if f.scopes[scope] == nil {
		f.scopes[scope] = map[string]failure{}
	}
	f.scopes[scope][vmID] = known
	return known
}

// keep forgets the machines that are not listed any more, and what was said of those that have not failed, or no longer. listed are the
// states of all machines by their IDs.
func (f *failures) keep(scope driver.Scope, listed map[string]driverv1.InstanceState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := make(map[string]failure, len(listed))
	for id, state := range listed {
		if state == driverv1.InstanceFailed {
			kept[id] = f.scopes[scope][id]
		} else if state != driverv1.InstanceTerminating { // What could not be deleted is there again.
			kept[id] = failure{before: state}
		}
	}
	if f.scopes[scope] = kept; len(kept) == 0 {
		delete(f.scopes, scope)
	}
}

// due is true if the machine is to be asked about: nothing that lasts is known of it. That one which runs loses its power is in
// ListStatus, which does not show the contrary.
func (k failure) due(now time.Time) bool {
	switch k.view.power {
	case "":
		return k.view.code == ""
	case "running":
		return false
	}
	return now.Sub(k.asked) >= viewAgain
}

// explain returns the failed machine with what is known of it. While that is nothing, it is what it was before; where that is not known
// either, it is about to start, or runs if launches have long ended by now. It has failed permanently only if Azure says why: a shortage is
// followed by another attempt, which ends this machine.
func (k failure) explain(i driver.Instance, now time.Time) driver.Instance {
	if k.view.complete() {
		return withView(i, k.view)
	}
	switch {
	case k.before != "":
		i.State = k.before
	case !i.LaunchTime.IsZero() && now.Sub(i.LaunchTime) > settled:
		i.State = driverv1.InstanceRunning
	default:
		i.State = driverv1.InstancePending
	}
	return i
}

// explain reports why machines of a list have failed, which lists do not; ids are those that Azure gives them, by their names. An answer
// that does not come changes nothing for the machine; an error is returned if Azure would refuse other calls too, which the code
// that paces them has to know.
func (d *Driver) explain(
	ctx context.Context, s *subscription, scope driver.Scope, group string, found []driver.Instance, ids map[string]string,
) error {
	var failed []*driver.Instance
	for i := range found {
		if found[i].State == driverv1.InstanceFailed {
			failed = append(failed, &found[i])
		}
	}
	// First those that were never asked about, of these the latest launches, which may have to be repeated.
	last := func(i *driver.Instance) time.Time { return d.failures.of(scope, ids[i.Name]).asked }
	slices.SortStableFunc(failed, func(a, b *driver.Instance) int {
		return cmp.Or(last(a).Compare(last(b)), b.LaunchTime.Compare(a.LaunchTime))
	})
	ctx, cancel := context.WithTimeout(ctx, viewsTime)
	defer cancel()
	now, asked := d.clock.Now(), 0
	for _, i := range failed {
		known := d.failures.of(scope, ids[i.Name])
		if asked < viewsPerList && known.due(now) && ctx.Err() == nil {
			asked++
			out, err := s.machines.InstanceView(ctx, group, i.Name, nil)
			if err = classify("VirtualMachines_InstanceView", err); endsBatch(err) {
				return err
			}
			known = d.failures.note(scope, ids[i.Name], fromStatuses(out.Statuses), now)
		}
		*i = known.explain(*i, now)
	}
	return nil
}
