package machineset

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// reserve returns at least one and at most n names for new Machines. Those of the reservation before come first, until a
// Machine of each has been seen: its creation may still take effect. Only then others are reserved, as many as the
// rollout will need in all: a set that grows by one Machine at a time would write a reservation for each of them.
func (r *Reconciler) reserve(ctx context.Context, s *scope, n int) ([]string, error) {
	if err := r.takeOver(ctx, s); err != nil {
		return nil, err
	}
	if open := r.expectations.openNames(s.Object.UID); len(open) > 0 {
		return open[:min(n, len(open))], nil
	}
	used := make(map[string]bool, len(s.machines))
	for _, machine := range s.machines {
		used[machine.Name] = true
	}
	made, names, err := newReservation(s.Object, r.newSeed(), min(max(n, s.remaining()), maxReserved), used)
	if err == nil && len(names) == 0 {
		err = errors.New("all names that could be reserved are in use")
	}
	if err != nil {
		return nil, err
	}
	if err := s.writeReservation(ctx, made); err != nil {
		return nil, errors.WithMessage(err, "reserving names for Machines")
	}
	r.expectations.reserve(s.Object.UID, made.seed, names, nil)
	open := r.expectations.openNames(s.Object.UID)
	return open[:min(n, len(open))], nil
}

// remaining is how many Machines the set has yet to get before it has all of its deployment's; 0 when it is not the set that
// a deployment is rolled out to.
func (s *scope) remaining() int {
	if s.deployment == nil || len(s.outdated) > 0 {
		return 0
	}
	return int(ptr.Deref(s.deployment.Spec.Replicas, 1)) - len(s.machines)
}

// takeOver records a reservation that this process has not written: one of the process before, or of another core. It is
// read from the API server first, as the cache may show one that has been used up.
func (r *Reconciler) takeOver(ctx context.Context, s *scope) error {
	found, ok := parseReservation(s.Object.Annotations[ReservedNamesAnnotation])
	if !ok || r.expectations.knowsSeed(s.Object.UID, found.seed) {
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(setKind)
	key := s.Key()
	if err := r.APIReader.Get(ctx, key, live); err != nil {
		return errors.Wrapf(err, "reading MachineSet %s", key)
	}
	if live.UID != s.Object.UID || live.Annotations[ReservedNamesAnnotation] != found.String() {
		return apierrors.NewConflict(clusterv1.GroupVersion.WithResource("machinesets").GroupResource(), s.Object.Name,
			errors.New("the cache shows an outdated reservation of names"))
	}
	names, err := found.names(s.Object)
	if err != nil {
		return err
	}
	r.expectations.reserve(s.Object.UID, found.seed, names, s.machines)
	return nil
}

// writeReservation writes the annotation, or removes it when no name is reserved. Of two cores that do so at once one
// gets a conflict.
func (s *scope) writeReservation(ctx context.Context, reserved reservation) error {
	return s.Patch(ctx, func(set *clusterv1.MachineSet) {
		set.Annotations = cloned(set.Annotations)
		set.Annotations[ReservedNamesAnnotation] = reserved.String()
		if len(reserved.open) == 0 {
			delete(set.Annotations, ReservedNamesAnnotation)
		}
	})
}

// retireNames takes the names of Machines that are being deleted out of the reservation, if others have deleted them: it
// comes before anything that may take its time.
func (r *Reconciler) retireNames(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.FromError(r.retire(ctx, s, nil))
}

// retire takes the names of Machines that are being deleted, and of those that will be, out of the reservation while
// their Machines still exist, so that no name is used a second time after a restart. The other names that are in use go
// with them; as long as no Machine is deleted, nothing is written.
func (r *Reconciler) retire(ctx context.Context, s *scope, victims []*clusterv1.Machine) error {
	reserved, ok := parseReservation(s.Object.Annotations[ReservedNamesAnnotation])
	if !ok {
		return nil
	}
	names, err := reserved.names(s.Object)
	if err != nil {
		// It is reported when a Machine is to be created.
		return nil //nolint:nilerr // see above
	}
	left, retire := r.expectations.stillOpen(s.Object.UID, reserved.seed, names, s.machines, uids(victims))
	if !retire {
		return nil
	}
	reserved.open = left
	return errors.WithMessage(persist.IgnoreGone(s.writeReservation(ctx, reserved)), "retiring the names of Machines that go")
}
