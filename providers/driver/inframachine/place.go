package inframachine

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/spread"
)

// place fills in the request, and decides the place of a new attempt.
func (r *Reconciler[M]) place(ctx context.Context, s *scope[M]) outcome {
	s.request.Object = s.obj
	s.request.Token = s.launched.token()
	s.request.OwnerUID = s.launched.UID
	s.request.Attempt = s.launched.Attempt
	s.request.ClusterName = s.clusterName
	s.request.FailureDomain = s.owner.Spec.FailureDomain
	if s.launched.Placement != "" {
		s.request.Placement = driver.Placement{ID: s.launched.Placement, FailureDomain: s.launched.FailureDomain}
		return proceed()
	}
	callCtx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	candidates, err := r.Driver.Places(callCtx, s.request)
	if err == nil && len(candidates) == 0 {
		err = driver.NewTerminalError("", "", errors.New("there is no place for the instance"))
	}
	if err != nil {
		return r.launchFailed(ctx, s, err, s.launched)
	}
	turn := spread.Turn(string(s.launched.UID), s.launched.Attempt)
	s.request.Placement, err = r.places.Place(s.machine(), candidates, turn, func() ([]spread.Machine, error) {
		return r.siblings(ctx, s)
	})
	if err != nil {
		return failed(err)
	}
	return proceed()
}

// machine names the object to the decisions on places.
func (s *scope[M]) machine() spread.Machine {
	return spread.Machine{Key: s.key, UID: s.obj.GetUID()}
}

// siblings returns the objects whose Machines have the same controller as this one's, without those that leave or have
// failed: they are to be replaced. Both kinds are read from the cache, without copies.
func (r *Reconciler[M]) siblings(ctx context.Context, s *scope[M]) ([]spread.Machine, error) {
	set := controllerUID(s.owner)
	if set == "" {
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrap(err, "listing the Machines of a set")
	}
	staying := map[types.UID]bool{}
	for i := range machines.Items {
		if m := &machines.Items[i]; m.DeletionTimestamp.IsZero() && controllerUID(m) == set {
			staying[m.UID] = true
		}
	}
	objects := r.NewList()
	if err := r.Client.List(ctx, objects, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing each %s of a set", r.Kind)
	}
	var found []spread.Machine
	err := meta.EachListItem(objects, func(item runtime.Object) error {
		if obj, ok := item.(M); ok && staying[controllerUID(obj)] && obj.GetDeletionTimestamp().IsZero() && !obj.CommonStatus().HasFailed() {
			found = append(found, spread.Machine{Key: client.ObjectKeyFromObject(obj), UID: obj.GetUID(), FailureDomain: recordedDomain(obj)})
		}
		return nil
	})
	return found, errors.Wrapf(err, "reading each %s of a set", r.Kind)
}

// recordedDomain is where the object's launch record says that its instance goes; of one that was not launched from here,
// where the instance was seen.
func recordedDomain(obj driver.Object) string {
	record, err := readRecord(obj)
	if err != nil || record.Placement == "" && obj.CommonSpec().ProviderID != "" {
		return obj.CommonStatus().FailureDomain
	}
	return record.FailureDomain
}
