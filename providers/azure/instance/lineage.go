package instance

import (
	"context"
	"maps"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"millwright.dev/providers/driver"
)

// Remark writes the tag with the lineage, and no other: of machines, and of what carries their mark. Azure replaces all tags at once, so
// those that there are are read just before.
func (d *Driver) Remark(ctx context.Context, scope driver.Scope, handles []driver.Handle, lineage string) []error {
	errs := make([]error, len(handles))
	s, group, err := d.in(ctx, scope)
	var found []piece
	if err == nil {
		found, err = s.pieces(ctx, group)
	}
	for i, h := range handles {
		if errs[i] = err; err == nil {
			errs[i] = s.remark(ctx, scope, group, h, found, lineage)
		}
	}
	return errs
}

func (s *subscription) remark(ctx context.Context, scope driver.Scope, group string, h driver.Handle, found []piece, lineage string) error {
	name, ok := target(scope, h)
	if !ok {
		return notFound("VirtualMachines_Update")
	}
	out, err := s.machines.Get(ctx, group, name, nil)
	if err != nil {
		return classify("VirtualMachines_Get", err)
	}
	if !h.Owns(marked(out.Tags)) {
		return notFound("VirtualMachines_Update")
	}
	// The parts first: once the machine has it, they are not read again.
	for _, p := range found {
		if h.Owns(marked(p.tags)) && tagOf(p.tags, TagLineage) != lineage {
			if err := s.tag(ctx, group, p, withLineage(p.tags, lineage)); driver.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	_, err = s.machines.BeginUpdate(ctx, group, name, armcompute.VirtualMachineUpdate{Tags: withLineage(out.Tags, lineage)}, nil)
	return classify("VirtualMachines_Update", err)
}

// tag replaces the tags of a piece.
func (s *subscription) tag(ctx context.Context, group string, p piece, tags map[string]*string) error {
	if p.kind == kindDisks {
		_, err := s.disks.BeginUpdate(ctx, group, p.name, armcompute.DiskUpdate{Tags: tags}, nil)
		return classify("Disks_Update", err)
	}
	return classify(p.kind+"_UpdateTags", s.network.tag(ctx, group, p.kind, p.name, tags))
}

// withLineage returns the tags with another lineage.
func withLineage(tags map[string]*string, lineage string) map[string]*string {
	out := maps.Clone(tags)
	maps.DeleteFunc(out, func(k string, _ *string) bool { return strings.EqualFold(k, TagLineage) })
	out[TagLineage] = &lineage
	return out
}
