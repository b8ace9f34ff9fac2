package instance

import (
	"context"
	"maps"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"millwright.dev/providers/driver"
)

// A machine that a person has made has the deleteOption Detach unless they chose another: its deletion leaves the interfaces and the OS
// disk. A person who marks such a machine for an AzureMachine gives that the right to end it, so its interfaces and OS disk end with it.
// Data disks and public addresses stay: they may be persistent volumes, or addresses that are known elsewhere.

// detached remembers the parts that the deletion of a machine would leave, from the look at it right before.
type detached struct {
	mu    sync.Mutex
	known map[resourceKey][]piece
}

func newDetached() *detached { return &detached{known: map[resourceKey][]piece{}} }

// note remembers the parts of a machine that is to end.
func (d *detached) note(scope driver.Scope, m *armcompute.VirtualMachine) {
	this := machineKey(scope, value(m.Name))
	_, group := split(scope)
	found := detachedOf(m, group)
	d.mu.Lock()
	defer d.mu.Unlock()
	if delete(d.known, this); len(found) > 0 {
		d.known[this] = found
	}
}

func (d *detached) take(this resourceKey) []piece {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.known[this]
	delete(d.known, this)
	return found
}

// detachedOf returns the interfaces and the OS disk of a machine that its deletion leaves, as far as they are in its resource group.
func detachedOf(m *armcompute.VirtualMachine, group string) (found []piece) {
	if m.Properties == nil {
		return nil
	}
	add := func(kind, id string) {
		if inGroup(id, group) {
			found = append(found, piece{kind: kind, name: nameOf(id)})
		}
	}
	if p := m.Properties.NetworkProfile; p != nil {
		for _, n := range p.NetworkInterfaces {
			if n != nil && (n.Properties == nil || value(n.Properties.DeleteOption) != armcompute.DeleteOptionsDelete) {
				add(kindInterfaces, value(n.ID))
			}
		}
	}
	if p := m.Properties.StorageProfile; p != nil && p.OSDisk != nil && p.OSDisk.ManagedDisk != nil &&
		value(p.OSDisk.DeleteOption) != armcompute.DiskDeleteOptionTypesDelete {
		add(kindDisks, value(p.OSDisk.ManagedDisk.ID))
	}
	return found
}

// claim marks the parts that the deletion of the machine would leave, so that Cleanup finds them. Parts with another mark stay as they are.
func (d *Driver) claim(ctx context.Context, s *subscription, group string, this resourceKey, h driver.Handle) error {
	for _, p := range d.detached.take(this) {
		tags, err := s.tagsOf(ctx, group, p)
		switch {
		case driver.IsNotFound(err):
			continue
		case err != nil:
			return err
		case marked(tags).OwnerUID != "" || marked(tags).Owner != "":
			continue
		}
		tags = maps.Clone(tags)
		if tags == nil {
			tags = map[string]*string{}
		}
		uid, owner := string(h.OwnerUID), h.Owner
		tags[TagOwnerUID], tags[TagMachine] = &uid, &owner
		if err := s.tag(ctx, group, p, tags); driver.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// tagsOf reads the tags of a piece.
func (s *subscription) tagsOf(ctx context.Context, group string, p piece) (map[string]*string, error) {
	if p.kind == kindDisks {
		out, err := s.disks.Get(ctx, group, p.name, nil)
		return out.Tags, classify("Disks_Get", err)
	}
	part, err := s.network.get(ctx, group, p.kind, p.name)
	return part.Tags, classify("NetworkInterfaces_Get", err)
}
