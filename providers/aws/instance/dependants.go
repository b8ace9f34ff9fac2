package instance

import (
	"context"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	apitypes "k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// Dependants lists the volumes and network interfaces that were tagged at the launches. Those that name another object are
// not counted: whoever writes a launch record can have resources tagged with any UID, and with no name but the object's.
func (d *Driver) Dependants(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	r, err := d.in(ctx, string(scope))
	if err != nil {
		return driver.Failed[[]string](len(handles), err)
	}
	left := newRemains(handles)
	for chunk := range left.chunks() {
		filters := []types.Filter{literally("tag:"+TagOwnerUID, chunk)}
		if err := r.volumes(ctx, filters, left); err != nil {
			return driver.Failed[[]string](len(handles), err)
		}
		if err := r.networkInterfaces(ctx, filters, left); err != nil {
			return driver.Failed[[]string](len(handles), err)
		}
	}
	return left.answers
}

func (r *region) volumes(ctx context.Context, filters []types.Filter, left *remains) error {
	pages := ec2.NewDescribeVolumesPaginator(r.api, &ec2.DescribeVolumesInput{MaxResults: aws.Int32(pageSize), Filters: filters})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, once)
		if err != nil {
			return classify("DescribeVolumes", err)
		}
		for _, v := range page.Volumes {
			left.add("volume "+aws.ToString(v.VolumeId), v.Tags)
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
			left.add("network interface "+aws.ToString(n.NetworkInterfaceId), n.TagSet)
		}
	}
	return nil
}

// remains gathers what exists of several handles.
type remains struct {
	handles []driver.Handle
	answers []driver.Answer[[]string]
	byUID   map[apitypes.UID][]int
}

func newRemains(handles []driver.Handle) *remains {
	left := &remains{handles: handles, answers: driver.Failed[[]string](len(handles), nil), byUID: map[apitypes.UID][]int{}}
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

// add counts a resource for the handles that its tags name.
func (l *remains) add(name string, tags []types.Tag) {
	owner := tagValue(tags, TagMachine)
	for _, i := range l.byUID[apitypes.UID(tagValue(tags, TagOwnerUID))] {
		if owner == "" || owner == l.handles[i].Owner {
			l.answers[i].Value = append(l.answers[i].Value, name)
		}
	}
}
