// Package lease has runs of the suites tell each other that they are alive, so that what a run that was killed has left can be told from
// what another one works with.
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

// Label is on everything that a run has made; its value is the run's ID.
const Label = "conformance.millwright.dev/run"

const (
	// renewEvery is how often a run says by its Lease that it is alive.
	renewEvery = 10 * time.Second
	// DeadAfter is how long a Lease may be silent until its run counts as dead: renewals may fail for a while, and clocks may differ.
	DeadAfter = 5 * time.Minute
)

// Run is a run of a suite.
type Run struct {
	Client client.Client
	// Suite is part of the Lease's name: runs of other suites do not matter.
	Suite string
	// ID is that of the run, and Namespace where its Lease is.
	ID, Namespace string
	// Within has others looked for in this namespace alone; everywhere if it is empty.
	Within string
	// Annotations are those of the Lease: what the next run has to know of this one.
	Annotations map[string]string
	// Logf receives what people should know.
	Logf func(format string, args ...any)
}

// Name is that of the Lease.
func (r Run) Name() string { return r.prefix() + r.ID }

func (r Run) prefix() string { return "conformance-" + r.Suite + "-" }

// Lease is by what other runs see that this one is alive.
func (r Run) Lease() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: r.Name(), Labels: map[string]string{Label: r.ID}, Annotations: r.Annotations,
	}}
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	return lease
}

// Live makes the Lease of the run and renews it until stop is called, also when ctx has ended: the run cleans up then.
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
				r.Logf("the Lease of the run is not renewed, other runs take this one for dead after %s: %v", DeadAfter, err)
			}
		}
	})
	return func() { cancel(); renewing.Wait() }, nil
}

// Others returns the IDs of other runs of the suite that are alive, and the Leases of those that are dead. What may belong to a run is to
// be read before this is called: a run makes its Lease first. A Lease that only has the label of a run, or that of one that is alive, is
// somebody else's: everybody may write a label.
func (r Run) Others(ctx context.Context) (alive map[string]bool, dead []coordinationv1.Lease, err error) {
	leases := &coordinationv1.LeaseList{}
	if err := r.Client.List(ctx, leases, client.HasLabels{Label}, client.InNamespace(r.Within)); err != nil {
		return nil, nil, errors.Wrap(err, "looking which other runs are alive")
	}
	alive = map[string]bool{}
	var silent []coordinationv1.Lease
	for _, lease := range leases.Items {
		id, renewed := lease.Labels[Label], lease.Spec.RenewTime
		switch {
		case id == r.ID || !strings.HasPrefix(lease.Name, r.prefix()):
		case renewed == nil || time.Since(renewed.Time) > DeadAfter:
			silent = append(silent, lease)
		default:
			alive[id] = true
		}
	}
	for _, lease := range silent {
		if id := lease.Labels[Label]; lease.Name == r.prefix()+id && !alive[id] {
			dead = append(dead, lease)
		}
	}
	return alive, dead, nil
}
