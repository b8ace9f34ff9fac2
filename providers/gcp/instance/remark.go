package instance

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	apitypes "k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// labelled is something with labels, which only a client may replace that knows their fingerprint.
type labelled struct {
	Labels           map[string]string `json:"labels"`
	LabelFingerprint string            `json:"labelFingerprint"`
}

// Remark writes the label with the lineage, and no other, of the instances and of those disks that carry their mark. Labels are
// replaced together, so each is read first; who has changed them meanwhile is not overwritten.
func (d *Driver) Remark(ctx context.Context, scope driver.Scope, handles []driver.Handle, lineage string) []error {
	disks, err := d.disksOf(ctx, scope, handles)
	return each(ctx, "Remark", scope, handles, func(i int) error {
		zone, _, _ := target(scope, handles[i])
		if err := lacks(err, zone); err != nil {
			return err
		}
		return d.remark(ctx, scope, handles[i], disks, lineage)
	})
}

func (d *Driver) remark(ctx context.Context, scope driver.Scope, h driver.Handle, disks []disk, lineage string) error {
	zone, name, ok := target(scope, h)
	if !ok {
		return notFound("instances.setLabels")
	}
	path := []string{"zones", zone, "instances", name}
	var found labelled
	err := d.call(ctx, scope, request{
		name: "instances.get", method: http.MethodGet, path: path, query: url.Values{"fields": {"labels,labelFingerprint"}},
	}, &found)
	if err != nil {
		return err
	}
	marked := driver.Instance{OwnerUID: apitypes.UID(found.Labels[LabelOwnerUID]), Owner: found.Labels[LabelOwner]}
	if !h.Owns(marked) {
		return notFound("instances.setLabels")
	}
	if err := d.setLineage(ctx, scope, "instances", path, found, lineage); err != nil {
		return err
	}
	for _, part := range disks {
		if !h.Owns(part.marked()) {
			continue
		}
		path := []string{"zones", last(part.Zone), "disks", part.Name}
		err := d.setLineage(ctx, scope, "disks", path, labelled{part.Labels, part.LabelFingerprint}, lineage)
		if driver.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) setLineage(ctx context.Context, scope driver.Scope, kind string, path []string, of labelled, lineage string) error {
	if of.Labels[LabelLineage] == lineage {
		return nil
	}
	labels := maps.Clone(of.Labels)
	labels[LabelLineage] = lineage
	_, err := d.change(ctx, scope, request{
		name: kind + ".setLabels", method: http.MethodPost, path: append(path, "setLabels"), body: labelled{labels, of.LabelFingerprint},
	})
	return err
}
