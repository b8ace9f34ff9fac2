package instance

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	apitypes "k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// atOnce is how many calls of a batch are made at a time in each zone.
const atOnce = 10

// each does something for each of the handles, some at a time, so that one whose calls hang does not take the time of all behind it, nor a
// zone whose calls hang that of any in another zone.
func each(ctx context.Context, operation string, scope driver.Scope, handles []driver.Handle, do func(i int) error) []error {
	errs := make([]error, len(handles))
	var calls sync.WaitGroup
	turns := map[string]chan struct{}{}
	for i := range handles {
		zone, _, _ := target(scope, handles[i])
		if turns[zone] == nil {
			turns[zone] = make(chan struct{}, atOnce)
		}
		mine := turns[zone]
		calls.Go(func() {
			mine <- struct{}{}
			defer func() { <-mine }()
			errs[i] = driver.Recover(ctx, operation, func() error { return do(i) })
		})
	}
	calls.Wait()
	return errs
}

// Delete asks for the end of each instance; its disks go with it. By its ID, where the caller has seen it: another owner's instance may
// have got the name since.
func (d *Driver) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	return each(ctx, "Delete", scope, handles, func(i int) error {
		zone, name, ok := target(scope, handles[i])
		if !ok {
			return notFound("instances.delete")
		}
		h := handles[i]
		_, err := d.deleteOnce(ctx, scope, zone, "instances/"+name+"/"+h.Incarnation, func() (operation, error) {
			return d.byID(ctx, scope, h, zone, name, func(instance string) request {
				return request{name: "instances.delete", method: http.MethodDelete, path: []string{"zones", zone, "instances", instance}}
			})
		})
		return err
	})
}

// byID makes a call about the instance that was looked at by its ID, and by its name if that is not known; also if no instance of the ID is
// found and the name still leads to it, as with a server of the API that takes names alone.
func (d *Driver) byID(
	ctx context.Context, scope driver.Scope, h driver.Handle, zone, name string, about func(instance string) request,
) (operation, error) {
	accepted, err := d.change(ctx, scope, about(cmp.Or(h.Incarnation, name)))
	if h.Incarnation == "" || !driver.IsNotFound(err) {
		return accepted, err
	}
	if now, failure := d.get(ctx, scope, h, zone, name); failure == nil && now.Incarnation == h.Incarnation {
		return d.change(ctx, scope, about(name))
	}
	return accepted, err
}

// change makes a call that goes on as an operation.
func (d *Driver) change(ctx context.Context, scope driver.Scope, r request) (accepted operation, err error) {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set("fields", operationFields)
	err = d.call(ctx, scope, r, &accepted)
	return accepted, err
}

// Unprotect lifts the deletion protection.
func (d *Driver) Unprotect(ctx context.Context, scope driver.Scope, h driver.Handle) error {
	zone, name, ok := target(scope, h)
	if !ok {
		return notFound("instances.setDeletionProtection")
	}
	_, err := d.byID(ctx, scope, h, zone, name, func(instance string) request {
		return request{
			name: "instances.setDeletionProtection", method: http.MethodPost,
			path:  []string{"zones", zone, "instances", instance, "setDeletionProtection"},
			query: url.Values{"deletionProtection": {"false"}},
		}
	})
	return err
}

// Cleanup lists the disks that carry the owners' labels and deletes those that nothing uses: of instances whose disks a user has
// kept from being deleted with them, and of insertions that Compute Engine has not undone.
func (d *Driver) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	answers := make([]driver.Answer[[]string], len(handles))
	disks, err := d.disksOf(ctx, scope, handles)
	errs := each(ctx, "Cleanup", scope, handles, func(i int) (failure error) {
		answers[i].Value, failure = d.cleanUp(ctx, scope, handles[i], disks)
		return failure
	})
	for i, h := range handles {
		if answers[i].Err = errs[i]; answers[i].Err == nil {
			answers[i].Err = lacksOf(err, scope, h)
		}
	}
	return answers
}

// lacksOf returns the error of a list if it lacks the zone in which the disks of a handle are: where their instance is. An attempt without
// a place has made none, and each one before was cleaned up after in its own zone: a zone that does not answer does not hold it up.
func lacksOf(err error, scope driver.Scope, h driver.Handle) error {
	zone, _, _ := target(scope, h)
	if list := driver.AsIncomplete(err); list != nil && !placed(h) {
		return nil
	}
	return lacks(err, zone)
}

// cleanUp returns which of the disks are those of a handle, and deletes those that nothing uses.
func (d *Driver) cleanUp(ctx context.Context, scope driver.Scope, h driver.Handle, disks []disk) (left []string, failure error) {
	for _, found := range disks {
		if !h.Owns(found.marked()) {
			continue
		}
		left = append(left, "disk "+found.Name)
		if len(found.Users) > 0 {
			continue
		}
		zone := last(found.Zone)
		late, err := d.deleteOnce(ctx, scope, zone, "disks/"+found.Name+"/"+found.CreationTimestamp, func() (operation, error) {
			return d.change(ctx, scope, request{
				name: "disks.delete", method: http.MethodDelete, path: []string{"zones", zone, "disks", found.Name},
			})
		})
		// One that is in use after all, or is being deleted, is in the next list or not.
		if driver.IgnoreNotFound(err) != nil && (late || !driver.IsRefused(err)) {
			failure = err
		}
	}
	return left, failure
}

// disksOf lists the disks with the owners' UIDs. Forged ones, which no label can have, select nothing. A zone that the list leaves out
// without a word may have some all the same: it is asked for its own.
func (d *Driver) disksOf(ctx context.Context, scope driver.Scope, handles []driver.Handle) ([]disk, error) {
	var owners []string
	for _, h := range handles {
		if uid := string(h.OwnerUID); plain.MatchString(uid) && !slices.Contains(owners, uid) {
			owners = append(owners, uid)
		}
	}
	if len(owners) == 0 {
		return nil, nil
	}
	marked := anyOf("labels."+LabelOwnerUID, owners)
	disks, answered, err := aggregated[disk](ctx, d, scope, "disks", diskFields, marked)
	if err != nil && driver.AsIncomplete(err) == nil {
		return nil, err
	}
	var unanswered []driver.Handle
	asked := zones{}
	for _, h := range handles {
		zone, _, ok := target(scope, h)
		if ok && placed(h) && !answered[zone] && !asked[zone] && lacks(err, zone) == nil {
			unanswered, asked[zone] = append(unanswered, h), true
		}
	}
	more, missing, failure := d.disksInZones(ctx, scope, unanswered, marked)
	disks = append(disks, more...)
	if len(missing) == 0 {
		return disks, err
	}
	if list := driver.AsIncomplete(err); list != nil {
		missing = append(missing, list.Missing...)
	}
	return disks, driver.NewIncomplete(missing, failure)
}

// zoneTime is how long a batch waits for the lists of single zones.
const zoneTime = 10 * time.Second

// disksInZones lists the disks that a filter selects in the zones of handles, and the zones of which that has failed.
func (d *Driver) disksInZones(
	ctx context.Context, scope driver.Scope, handles []driver.Handle, filter string,
) (all []disk, missing []string, failure error) {
	ctx, cancel := context.WithTimeout(ctx, zoneTime)
	defer cancel()
	found := make([][]disk, len(handles))
	errs := each(ctx, "disks.list", scope, handles, func(i int) (err error) {
		zone, _, _ := target(scope, handles[i])
		found[i], err = d.disksIn(ctx, scope, zone, filter)
		return err
	})
	for i, err := range errs {
		if err != nil {
			zone, _, _ := target(scope, handles[i])
			missing, failure = append(missing, zone), err
		}
		all = append(all, found[i]...)
	}
	return all, missing, failure
}

// disksIn lists the disks of one zone that a filter selects: none where there is no such zone.
func (d *Driver) disksIn(ctx context.Context, scope driver.Scope, zone, filter string) (all []disk, err error) {
	query := url.Values{"filter": {filter}, "fields": {"nextPageToken,items(" + diskFields + ")"}}
	for more := true; more; more = query.Get("pageToken") != "" {
		var page struct {
			Items         []disk
			NextPageToken string
		}
		err := d.call(ctx, scope, request{
			name: "disks.list", method: http.MethodGet, path: []string{"zones", zone, "disks"}, query: query,
		}, &page)
		switch {
		case inNoZone(err):
			return nil, nil
		case err != nil:
			return nil, ofSpec(err)
		}
		all = append(all, page.Items...)
		query.Set("pageToken", page.NextPageToken)
	}
	return all, nil
}

// placed is true for the handle of a launch that has a zone.
func placed(h driver.Handle) bool { return h.ProviderID != "" || h.Placement.ID != "" }

// marked is an instance that carries the mark of the disk.
func (d *disk) marked() driver.Instance {
	return driver.Instance{OwnerUID: apitypes.UID(d.Labels[LabelOwnerUID]), Owner: d.Labels[LabelOwner], Lineage: d.Labels[LabelLineage]}
}

// ListLeftovers returns the disks that carry a mark and that nothing uses.
func (d *Driver) ListLeftovers(ctx context.Context, scope driver.Scope) ([]driver.Leftover, error) {
	disks, _, err := aggregated[disk](ctx, d, scope, "disks", diskFields, "labels."+LabelOwnerUID+":*")
	var left []driver.Leftover
	for _, found := range disks {
		if len(found.Users) > 0 {
			continue
		}
		mark := found.marked()
		left = append(left, driver.Leftover{
			Kind: "disk", ID: found.Name, OwnerUID: mark.OwnerUID, Owner: mark.Owner, Lineage: mark.Lineage,
			Created: timeOf(found.CreationTimestamp),
		})
	}
	return left, err
}
