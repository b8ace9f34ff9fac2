package instance

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"millwright.dev/providers/driver"
)

var (
	_ driver.Remarker       = (*Driver)(nil)
	_ driver.LeftoverLister = (*Driver)(nil)
)

// remarkCalls bounds the calls of CreateTags of one Remark.
const remarkCalls = 16

// Remark writes the tag with the lineage, and no other: of the instances, and of those volumes and network interfaces that carry their
// mark. What else is attached to them, such as a PersistentVolume, does not become ours.
func (d *Driver) Remark(ctx context.Context, scope driver.Scope, handles []driver.Handle, lineage string) []error {
	errs := make([]error, len(handles))
	r, err := d.in(ctx, scope)
	left := newRemains(handles)
	if err == nil {
		err = r.find(ctx, left)
	}
	ids, parts := make([]string, 0, len(handles)), map[string][]string{}
	for i, h := range handles {
		errs[i] = err
		ids = append(ids, instanceID(h.ProviderID))
		parts[instanceID(h.ProviderID)] = left.marked[i]
	}
	if err != nil {
		return errs
	}
	failed := isolate("CreateTags", distinct(ids), remarkCalls, func(some []string) error {
		in := &ec2.CreateTagsInput{Tags: []types.Tag{{Key: aws.String(TagLineage), Value: aws.String(lineage)}}}
		for _, id := range some {
			in.Resources = append(append(in.Resources, id), parts[id]...)
		}
		_, err := r.api.CreateTags(ctx, in, once)
		return classify("CreateTags", err)
	})
	for i, h := range handles {
		errs[i] = failed[instanceID(h.ProviderID)]
	}
	return errs
}

// ListLeftovers returns the volumes and network interfaces that carry a mark and are attached to nothing.
func (d *Driver) ListLeftovers(ctx context.Context, scope driver.Scope) ([]driver.Leftover, error) {
	r, err := d.in(ctx, scope)
	if err != nil {
		return nil, err
	}
	left := newRemains(nil)
	filters := []types.Filter{{Name: aws.String("tag-key"), Values: []string{TagOwnerUID}}, literally("status", []string{"available"})}
	if err := r.volumes(ctx, filters, left); err != nil {
		return nil, err
	}
	if err := r.networkInterfaces(ctx, filters, left); err != nil {
		return left.leftovers, err
	}
	return left.leftovers, nil
}
