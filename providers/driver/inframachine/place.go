package inframachine

import (
	"context"
	"maps"
	"slices"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/spread"
)

// place completes the request, and decides the place of a new attempt.
func (r *Reconciler[M]) place(ctx context.Context, s *scope[M]) outcome.Outcome {
	s.completeRequest()
	s.name()
	candidates, err := r.allowedPlaces(ctx, s)
	s.allowed = candidates
	if s.launched.Placement != "" && (err == nil || driver.IsTerminal(err)) {
		if out := r.checkPlace(ctx, s, candidates); !out.Finished() || s.request.Placement.ID != "" || s.handle.ProviderID != "" {
			return out
		}
	}
	if err != nil {
		return r.launchFailed(ctx, s, driver.WithoutEffect(err), s.launched)
	}
	candidates = r.offerings(s, candidates)
	turn := spread.Turn(string(s.launched.UID), s.launched.Attempt)
	s.request.Placement, err = r.places.Place(s.machine(), candidates, turn, func() ([]spread.Machine, error) {
		return r.siblings(ctx, s)
	})
	if err != nil {
		return outcome.FromError(err)
	}
	s.handle.Placement = s.request.Placement
	return outcome.Continue()
}

// offerings returns the candidates that the next attempt chooses from, with what is known of shortages.
func (r *Reconciler[M]) offerings(s *scope[M], candidates []driver.Candidate) []driver.Candidate {
	candidates = untaken(withoutTypes(candidates, r.typesRefused(s)), r.taken.get(s.Key()))
	candidates = untaken(candidates, r.inventory.Silent(s.handle.Scope)) // What goes there could not be seen, nor go elsewhere then.
	return r.shortages.Mark(r.cloud.LimitScope(s.handle.Scope), candidates)
}

// completeRequest sets what the request has before it has a name and a place.
func (s *scope[M]) completeRequest() {
	s.request.Object = s.Object
	s.request.Token = s.launched.token(s.Key().String())
	s.request.OwnerUID = s.launched.UID
	s.request.RequestID = driver.LaunchRequestID(s.request.Token)
	s.request.Scope, s.request.Owner = s.handle.Scope, s.handle.Owner
	s.request.Attempt = s.launched.Attempt
	s.request.ClusterName = s.clusterName
	s.request.FailureDomain = s.owner.Spec.FailureDomain
}

// name decides the name of the instance, if the cloud finds instances by names: that of the Machine.
func (s *scope[M]) name() {
	if s.nameLimit == 0 {
		return
	}
	s.request.Name = driver.Name(s.owner.Name, s.nameLimit)
	if s.launched.Placement == "" { // No call has been made under another.
		s.launched.Name, s.handle.Name = s.request.Name, s.request.Name
	}
}

// allowedPlaces returns where the spec and the Machine let the instance go; at least one.
func (r *Reconciler[M]) allowedPlaces(ctx context.Context, s *scope[M]) ([]driver.Candidate, error) {
	callCtx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	candidates, err := r.cloud.Places(callCtx, s.request)
	if err == nil && len(candidates) == 0 {
		err = driver.NewTerminalError("", "", errors.New("there is no place for the instance"))
	}
	return candidates, err
}

// machine identifies the object to the decisions on places.
func (s *scope[M]) machine() spread.Machine {
	return spread.Machine{Key: s.Key(), UID: s.Object.GetUID()}
}

// listCached lists, from the cache and without copies, what that UID controls in the namespace of the object; all of the
// namespace if it is empty.
func (r *Reconciler[M]) listCached(ctx context.Context, s *scope[M], list client.ObjectList, controller types.UID) error {
	opts := []client.ListOption{client.InNamespace(s.Key().Namespace), client.UnsafeDisableDeepCopy}
	if controller != "" {
		opts = append(opts, client.MatchingFields{controllerField: string(controller)})
	}
	return r.Client.List(ctx, list, opts...)
}

// fewMachines is up to how many machines of a set are looked up one by one: many are faster found among all of the namespace.
const fewMachines = 64

// siblings returns the objects whose Machines have the same controller as this one's, without those that leave or have
// failed: they are to be replaced.
func (r *Reconciler[M]) siblings(ctx context.Context, s *scope[M]) ([]spread.Machine, error) {
	set := controllerUID(s.owner)
	if set == "" {
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := r.listCached(ctx, s, machines, set); err != nil {
		return nil, errors.Wrap(err, "listing the Machines of a set")
	}
	staying := make(map[types.UID]bool, len(machines.Items))
	for i := range machines.Items {
		if m := &machines.Items[i]; m.DeletionTimestamp.IsZero() {
			staying[m.UID] = true
		}
	}
	owners := []types.UID{""}
	if len(staying) <= fewMachines {
		owners = slices.Collect(maps.Keys(staying))
	}
	var found []spread.Machine
	for _, owner := range owners {
		objects := r.NewList()
		if err := r.listCached(ctx, s, objects, owner); err != nil {
			return nil, errors.Wrapf(err, "listing each %s of a set", r.Kind)
		}
		err := meta.EachListItem(objects, func(item runtime.Object) error {
			if obj, ok := item.(M); ok && staying[controllerUID(obj)] && obj.GetDeletionTimestamp().IsZero() && !obj.CommonStatus().HasFailed() {
				found = append(found, spread.Machine{Key: client.ObjectKeyFromObject(obj), UID: obj.GetUID(), FailureDomain: recordedDomain(obj)})
			}
			return nil
		})
		if err != nil {
			return nil, errors.Wrapf(err, "reading each %s of a set", r.Kind)
		}
	}
	return found, nil
}

// recordedDomain is where its instance goes according to the object's launch record; of one that was not launched from here,
// where the instance was seen.
func recordedDomain(obj driver.Object) string {
	record, err := readRecord(obj)
	if err != nil || record.Placement == "" && obj.CommonSpec().ProviderID != "" {
		return obj.CommonStatus().FailureDomain
	}
	return record.FailureDomain
}
