package instance

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"

	apitypes "k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// atOnce is how many calls of a batch are made at a time.
const atOnce = 10

// each does something for each of n handles, some at a time, so that one whose calls hang does not take the time of all behind it.
func each(ctx context.Context, operation string, n int, do func(i int) error) []error {
	errs := make([]error, n)
	var calls sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i := range n {
		turns <- struct{}{}
		calls.Go(func() {
			defer func() { <-turns }()
			errs[i] = driver.Recover(ctx, operation, func() error { return do(i) })
		})
	}
	calls.Wait()
	return errs
}

// Delete asks for the end of each instance; its disks go with it. By its ID, where the caller has seen it: somebody else's may have got the
// name since.
func (d *Driver) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	return each(ctx, "Delete", len(handles), func(i int) error {
		zone, name, ok := target(scope, handles[i])
		if !ok {
			return notFound("instances.delete")
		}
		return d.byID(ctx, scope, handles[i], zone, name, func(instance string) request {
			return request{name: "instances.delete", method: http.MethodDelete, path: []string{"zones", zone, "instances", instance}}
		})
	})
}

// byID makes a call about the instance that was looked at by its ID, and by its name if that is not known; also if no instance of the ID is
// found and the name still leads to it, as with a server of the API that takes names alone.
func (d *Driver) byID(
	ctx context.Context, scope driver.Scope, h driver.Handle, zone, name string, about func(instance string) request,
) error {
	err := d.change(ctx, scope, about(cmp.Or(h.Incarnation, name)))
	if h.Incarnation == "" || !driver.IsNotFound(err) {
		return err
	}
	if now, failure := d.get(ctx, scope, h, zone, name); failure == nil && now.Incarnation == h.Incarnation {
		return d.change(ctx, scope, about(name))
	}
	return err
}

// change makes a call whose operation need not be followed: lists show what has come of it.
func (d *Driver) change(ctx context.Context, scope driver.Scope, r request) error {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set("fields", operationFields)
	return d.call(ctx, scope, r, &operation{})
}

// Unprotect lifts the deletion protection.
func (d *Driver) Unprotect(ctx context.Context, scope driver.Scope, h driver.Handle) error {
	zone, name, ok := target(scope, h)
	if !ok {
		return notFound("instances.setDeletionProtection")
	}
	return d.byID(ctx, scope, h, zone, name, func(instance string) request {
		return request{
			name: "instances.setDeletionProtection", method: http.MethodPost,
			path:  []string{"zones", zone, "instances", instance, "setDeletionProtection"},
			query: url.Values{"deletionProtection": {"false"}},
		}
	})
}

// Cleanup lists the disks that carry the owners' labels and deletes those that nothing uses: of instances whose disks somebody has
// kept from being deleted with them, and of insertions that Compute Engine has not undone.
func (d *Driver) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	answers := make([]driver.Answer[[]string], len(handles))
	disks, err := d.disksOf(ctx, scope, handles)
	errs := each(ctx, "Cleanup", len(handles), func(i int) (failure error) {
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
	placed := h.ProviderID != "" || h.Placement.ID != ""
	if list := driver.AsIncomplete(err); list != nil && !placed {
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
		err := d.change(ctx, scope, request{
			name: "disks.delete", method: http.MethodDelete, path: []string{"zones", last(found.Zone), "disks", found.Name},
		})
		// One that is in use after all, or is being deleted, is in the next list or not.
		if driver.IgnoreNotFound(err) != nil && !driver.IsRefused(err) {
			failure = err
		}
	}
	return left, failure
}

// disksOf lists the disks with the owners' UIDs. Forged ones, which no label can have, select nothing.
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
	disks, _, err := aggregated[disk](ctx, d, scope, "disks", diskFields, anyOf("labels."+LabelOwnerUID, owners))
	return disks, err
}

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
