package instance

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	apitypes "k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// Delete asks for the end of each instance; its disks go with it.
func (d *Driver) Delete(ctx context.Context, scope driver.Scope, handles []driver.Handle) []error {
	failures := make([]error, len(handles))
	for i, h := range handles {
		failures[i] = notFound("instances.delete")
		if zone, name, ok := target(scope, h); ok {
			failures[i] = d.change(ctx, scope, request{
				name: "instances.delete", method: http.MethodDelete, path: []string{"zones", zone, "instances", name},
			})
		}
	}
	return failures
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
	return d.change(ctx, scope, request{
		name: "instances.setDeletionProtection", method: http.MethodPost,
		path: []string{"zones", zone, "instances", name, "setDeletionProtection"}, query: url.Values{"deletionProtection": {"false"}},
	})
}

// Cleanup lists the disks that carry the owners' labels and deletes those that nothing uses: of instances whose disks somebody has
// kept from being deleted with them, and of insertions that Compute Engine has not undone.
func (d *Driver) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	answers := make([]driver.Answer[[]string], len(handles))
	disks, err := d.disksOf(ctx, scope, handles)
	for i, h := range handles {
		zone, _, _ := target(scope, h) // Disks are where their instance is, and each attempt is cleaned up after for itself.
		answers[i].Err = lacks(err, zone)
	}
	for _, found := range disks {
		for i, h := range handles {
			if !h.Owns(found.marked()) {
				continue
			}
			answers[i].Value = append(answers[i].Value, "disk "+found.Name)
			if len(found.Users) > 0 {
				continue
			}
			err := d.change(ctx, scope, request{
				name: "disks.delete", method: http.MethodDelete, path: []string{"zones", last(found.Zone), "disks", found.Name},
			})
			// One that is in use after all, or is being deleted, is in the next list or not.
			if driver.IgnoreNotFound(err) != nil && !driver.IsRefused(err) {
				answers[i].Err = err
			}
		}
	}
	return answers
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
	return aggregated[disk](ctx, d, scope, "disks", diskFields, anyOf("labels."+LabelOwnerUID, owners))
}

// marked is an instance that carries the mark of the disk.
func (d *disk) marked() driver.Instance {
	return driver.Instance{OwnerUID: apitypes.UID(d.Labels[LabelOwnerUID]), Owner: d.Labels[LabelOwner], Lineage: d.Labels[LabelLineage]}
}

// ListLeftovers returns the disks that carry a mark and that nothing uses.
func (d *Driver) ListLeftovers(ctx context.Context, scope driver.Scope) ([]driver.Leftover, error) {
	disks, err := aggregated[disk](ctx, d, scope, "disks", diskFields, "labels."+LabelOwnerUID+":*")
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
