package instance

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	apitypes "k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// maxDeletions bounds the calls of one Cleanup: EC2 deletes volumes and interfaces one by one. What is left is deleted by the next.
const maxDeletions = 20

// Cleanup lists the volumes and network interfaces that were tagged at the launches, and deletes those that are attached to
// nothing: EC2 leaves them where an instance ended before they were attached, or a user has changed how they end. Those that
// name another object are not counted: anyone who writes a launch record can have resources tagged with any UID, and with no name
// but the object's.
func (d *Driver) Cleanup(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	r, err := d.in(ctx, scope)
	if err != nil {
		return driver.Failed[[]string](len(handles), err)
	}
	left := newRemains(handles)
	if err := r.find(ctx, left); err != nil {
		return driver.Failed[[]string](len(handles), err)
	}
	r.deleteUnattached(ctx, left)
	return left.answers
}

// find lists what was launched for the handles.
func (r *region) find(ctx context.Context, left *remains) error {
	for chunk := range left.chunks() {
		filters := []types.Filter{literally("tag:"+TagOwnerUID, chunk)}
		if err := r.volumes(ctx, filters, left); err != nil {
			return err
		}
		if err := r.networkInterfaces(ctx, filters, left); err != nil {
			return err
		}
	}
	return nil
}

// deleteUnattached deletes what is attached to nothing. An error is that of the handles that the resource belongs to; what does not exist
// any more is no error, and what has been deleted remains until a list shows that it is gone.
func (r *region) deleteUnattached(ctx context.Context, left *remains) {
	for _, l := range left.detached[:min(len(left.detached), maxDeletions)] {
		var err error
		if l.volume {
			_, err = r.api.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: aws.String(l.id)}, once)
			err = classify("DeleteVolume", err)
		} else {
			_, err = r.api.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(l.id)}, once)
			err = classify("DeleteNetworkInterface", err)
		}
		if isGoneOrInUse(err) {
			continue
		}
		for _, i := range l.owners {
			if left.answers[i].Err == nil {
				left.answers[i].Err = err
			}
		}
		if driver.IsThrottle(err) {
			return
		}
	}
}

// isGoneOrInUse returns whether what was to be deleted does not exist any more, or is attached after all, so that the next list has it.
func isGoneOrInUse(err error) bool {
	switch code, _ := codeOf(err); code {
	case "InvalidVolume.NotFound", "InvalidNetworkInterfaceID.NotFound", "VolumeInUse", "InvalidNetworkInterface.InUse",
		"InvalidParameterValue", "IncorrectState":
		return true
	}
	return false
}

func (r *region) volumes(ctx context.Context, filters []types.Filter, left *remains) error {
	pages := ec2.NewDescribeVolumesPaginator(r.api, &ec2.DescribeVolumesInput{MaxResults: aws.Int32(pageSize), Filters: filters})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, once)
		if err != nil {
			return classify("DescribeVolumes", err)
		}
		for _, v := range page.Volumes {
			left.add("volume", v.Tags, detached{
				id: aws.ToString(v.VolumeId), volume: true, isUnattached: v.State == types.VolumeStateAvailable, created: aws.ToTime(v.CreateTime),
			})
		}
	}
	return nil
}

func (r *region) networkInterfaces(ctx context.Context, filters []types.Filter, left *remains) error {
	pages := ec2.NewDescribeNetworkInterfacesPaginator(r.api, &ec2.DescribeNetworkInterfacesInput{
		MaxResults: aws.Int32(pageSize), Filters: filters,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, once)
		if err != nil {
			return classify("DescribeNetworkInterfaces", err)
		}
		for _, n := range page.NetworkInterfaces {
			left.add("network interface", n.TagSet, detached{
				id: aws.ToString(n.NetworkInterfaceId), isUnattached: n.Status == types.NetworkInterfaceStatusAvailable,
			})
		}
	}
	return nil
}

// remains gathers what exists of several handles.
type remains struct {
	handles []driver.Handle
	answers []driver.Answer[[]string]
	byUID   map[apitypes.UID][]int
	// detached is what is attached to nothing and carries the whole mark.
	detached []detached
	// marked is what carries the whole mark, by handle; leftovers are what is attached to nothing, whosever it is.
	marked    map[int][]string
	leftovers []driver.Leftover
}

// detached is a resource that may be deleted.
type detached struct {
	id           string
	volume       bool
	isUnattached bool
	owners       []int
	// created is zero where EC2 does not say.
	created time.Time
}

func newRemains(handles []driver.Handle) *remains {
	left := &remains{
		handles: handles, answers: driver.Failed[[]string](len(handles), nil), byUID: map[apitypes.UID][]int{}, marked: map[int][]string{},
	}
	for i, h := range handles {
		if h.OwnerUID != "" { // Nothing carries the mark of a handle without one.
			left.byUID[h.OwnerUID] = append(left.byUID[h.OwnerUID], i)
		}
	}
	return left
}

// chunks are the UIDs in numbers that one filter takes.
func (l *remains) chunks() iter.Seq[[]string] {
	uids := make([]string, 0, len(l.byUID))
	for uid := range l.byUID {
		uids = append(uids, string(uid))
	}
	return slices.Chunk(distinct(uids), maxFilterValues)
}

// add counts a resource for the handles that its tags name. To be deleted, it must name the object as well.
func (l *remains) add(kind string, tags []types.Tag, resource detached) {
	owner, name := tagValue(tags, TagMachine), kind+" "+resource.id
	if resource.isUnattached {
		l.leftovers = append(l.leftovers, driver.Leftover{
			Kind: kind, ID: resource.id, OwnerUID: apitypes.UID(tagValue(tags, TagOwnerUID)), Owner: owner,
			Lineage: tagValue(tags, TagLineage), Created: resource.created,
		})
	}
	for _, i := range l.byUID[apitypes.UID(tagValue(tags, TagOwnerUID))] {
		if owner == "" || owner == l.handles[i].Owner {
			l.answers[i].Value = append(l.answers[i].Value, name)
		}
		if owner != "" && owner == l.handles[i].Owner {
			resource.owners = append(resource.owners, i)
			l.marked[i] = append(l.marked[i], resource.id)
		}
	}
	if resource.isUnattached && len(resource.owners) > 0 {
		l.detached = append(l.detached, resource)
	}
}
