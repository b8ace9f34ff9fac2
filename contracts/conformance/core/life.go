package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
)

const (
	// renewEvery is how often a run says by its Lease that it is alive.
	renewEvery = 10 * time.Second
	// deadAfter is how long a Lease may be silent until its run counts as dead: renewals may fail for a while, and clocks may differ.
	deadAfter = 5 * time.Minute
)

// lease is by what other runs see that this one is alive.
func (e *Env) lease() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: leaseName(e.Run)}}
	lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
	e.own(lease)
	return lease
}

// leaseName names the Lease of a run.
func leaseName(run string) string { return "conformance-core-" + run }

// live makes the Lease of the run and renews it until stop is called, also when ctx has ended: the run cleans up then.
func live(ctx context.Context, env *Env) (stop func(), err error) {
	lease := env.lease()
	if err := env.Client.Create(ctx, lease); err != nil {
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
			err := env.Client.Patch(ctx, lease.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(renewal)))
			if err != nil && ctx.Err() == nil {
				env.say("the Lease of the run is not renewed, other runs take this one for dead after %s: %v", deadAfter, err)
			}
		}
	})
	return func() { cancel(); renewing.Wait() }, nil
}

// others returns the IDs of other runs that are alive, and the Leases of those that are dead. What may belong to a run is to be read
// before this is called: a run makes its Lease first.
func others(ctx context.Context, env *Env) (alive map[string]bool, dead []coordinationv1.Lease, err error) {
	leases := &coordinationv1.LeaseList{}
	if err := env.Client.List(ctx, leases, client.HasLabels{behaviour.LabelRun}); err != nil {
		return nil, nil, errors.Wrap(err, "looking which other runs are alive")
	}
	alive = map[string]bool{}
	for i := range leases.Items {
		run, renewed := leases.Items[i].Labels[behaviour.LabelRun], leases.Items[i].Spec.RenewTime
		switch {
		case run == env.Run:
		case renewed == nil || time.Since(renewed.Time) > deadAfter:
			dead = append(dead, leases.Items[i])
		default:
			alive[run] = true
		}
	}
	return alive, dead, nil
}
