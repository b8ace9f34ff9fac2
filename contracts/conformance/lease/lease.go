// Package lease lets runs of the suites see which other runs are alive, so that leftovers of a killed run can be distinguished from
// objects in use by another one.
package lease

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Label is on everything that a run has created; its value is the run's ID.
const Label = "conformance.millwright.dev/run"

const (
	// renewEvery is how often a run renews its Lease.
	renewEvery = 10 * time.Second
	// DeadAfter is how old a renewal may be before the run counts as dead: renewals may fail for a while, and clocks may differ.
	DeadAfter = 5 * time.Minute
)

// Run is a run of a suite.
type Run struct {
	Client client.Client
	// Suite is part of the Lease's name: runs of other suites do not matter.
	Suite string
	// ID is that of the run, and Namespace where its Lease is.
	ID, Namespace string
	// Within is the only namespace in which other runs are looked for; all if it is empty.
	Within string
	// Annotations are those of the Lease: what the next run has to know about this one.
	Annotations map[string]string
	// Logf receives messages for the user.
	Logf func(format string, args ...any)
}

// Name is that of the Lease.
func (r Run) Name() string { return r.prefix() + r.ID }

func (r Run) prefix() string { return "conformance-" + r.Suite + "-" }

// Lease is the object by which other runs see that this one is alive.
func (r Run) Lease() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: r.Name(), Labels: map[string]string{Label: r.ID}, Annotations: r.Annotations,
	}}
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	return lease
}

// Live creates the Lease of the run and renews it until stop is called, also when ctx has ended: the run cleans up then.
func (r Run) Live(ctx context.Context) (stop func(), err error) {
	lease := r.Lease()
	if err := r.Client.Create(ctx, lease); err != nil {
		return nil, errors.Wrap(err, "creating the Lease of the run")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(renewEvery):
			}
			renewal := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
			err := r.Client.Patch(ctx, lease.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(renewal)))
			if err != nil && ctx.Err() == nil {
				r.Logf("the Lease of the run is not renewed, other runs consider this one dead after %s: %v", DeadAfter, err)
			}
		}
	})
	return func() { cancel(); renewing.Wait() }, nil
}

// Others returns the IDs of other runs of the suite that are alive, and the Leases of those that are dead. List what may belong to a run
// before this is called: a run creates its Lease first. A Lease that only has the label of a run, or the label of a live run, is
// ignored: any user may write a label.
func (r Run) Others(ctx context.Context) (alive map[string]bool, dead []coordinationv1.Lease, err error) {
	leases := &coordinationv1.LeaseList{}
	if err := r.Client.List(ctx, leases, client.HasLabels{Label}, client.InNamespace(r.Within)); err != nil {
		return nil, nil, errors.Wrap(err, "listing the Leases of other runs")
	}
	alive = map[string]bool{}
	var expired []coordinationv1.Lease
	for _, lease := range leases.Items {
		id, renewed := lease.Labels[Label], lease.Spec.RenewTime
		switch {
		case id == r.ID || !strings.HasPrefix(lease.Name, r.prefix()):
		case renewed == nil || time.Since(renewed.Time) > DeadAfter:
			expired = append(expired, lease)
		default:
			alive[id] = true
		}
	}
	for _, lease := range expired {
		if id := lease.Labels[Label]; lease.Name == r.prefix()+id && !alive[id] {
			dead = append(dead, lease)
		}
	}
	return alive, dead, nil
}
