package machineset

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
)

// DefaultPreserveTimeout is how long preserved Machines stay: as with Gardener's machine-controller-manager.
const DefaultPreserveTimeout = 96 * time.Hour

// preserveNow releases those Machines that a user wants to inspect at once. They no longer belong to the set, and others are created.
func (r *Reconciler) preserveNow(ctx context.Context, s *scope) outcome.Outcome {
	end := outcome.Continue()
	for _, machine := range slices.Clone(s.machines) {
		if machine.DeletionTimestamp.IsZero() && machines.Preservation(machine) == machines.PreserveNow {
			end = end.And(outcome.FromError(r.preserve(ctx, s, machine, "its annotation asks for that")))
		}
	}
	return end
}

// preserveFailed keeps those of the Machines for inspection that would be deleted now and are to be kept, and returns the others.
func (r *Reconciler) preserveFailed(
	ctx context.Context,
	s *scope,
	doomed []*clusterv1.Machine,
) (rest []*clusterv1.Machine, failures []error) {
	for _, machine := range doomed {
		kept, err := r.preserveOne(ctx, s, machine)
		switch {
		case err != nil:
			failures = append(failures, err)
		case !kept:
			rest = append(rest, machine)
		}
	}
	return rest, failures
}

// preserveOne keeps a Machine that has failed, if it is to be kept: since its annotation says so, or since fewer of its deployment are kept
// than are to be.
func (r *Reconciler) preserveOne(ctx context.Context, s *scope, machine *clusterv1.Machine) (bool, error) {
	switch machines.Preservation(machine) {
	case machines.PreserveNow, machines.PreserveWhenFailed:
		return true, r.preserve(ctx, s, machine, "it has failed")
	case machines.PreserveNever:
		return false, nil
	}
	limit, _ := machines.PreserveMax(s.deployment, r.PreserveFailedMax)
	if limit == 0 {
		return false, nil
	}
	return r.preserveWithin(ctx, s, machine, limit)
}

// preserveWithin keeps a Machine if fewer of its group are kept than the limit. Of the sets of a deployment one at a time does so; what
// another core has done meanwhile is seen after it.
func (r *Reconciler) preserveWithin(ctx context.Context, s *scope, machine *clusterv1.Machine, limit int) (bool, error) {
	unlock, err := r.preserving.lock(ctx, remediation.GroupOf(s.Object))
	if err != nil {
		return false, errors.Wrapf(err, "waiting until other Machines of the deployment of MachineSet %s are preserved", s.Key())
	}
	defer unlock()
	kept, err := r.preservedNow(ctx, s)
	if err != nil || len(kept) >= limit {
		return false, err
	}
	if err := r.preserve(ctx, s, machine, "it has failed"); err != nil {
		return false, err
	}
	if kept, err = r.preservedNow(ctx, s); err != nil {
		// It is kept by now. Another core may have kept one too many, which goes when its time is over.
		return true, err
	}
	return true, r.endSurplus(ctx, s, kept, limit)
}

// preservedNow are the preserved Machines of the group of a set, as the API server has them: the cache may not show those yet that were
// kept a moment ago.
func (r *Reconciler) preservedNow(ctx context.Context, s *scope) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	err := r.APIReader.List(ctx, list, client.InNamespace(s.Object.Namespace),
		client.MatchingLabels{machines.PreservedLabel: machines.PreservedOf(s.Object)})
	return slices.DeleteFunc(list.Items, func(m metav1.PartialObjectMetadata) bool { return !machines.PreservedFromGroup(&m, s.Object) }),
		errors.Wrapf(err, "listing the preserved Machines of MachineSet %s", s.Key())
}

// endSurplus deletes the preserved Machines that are too many, since two cores have each kept the last one. Both go by the same order, so
// that both mean the same Machines: those that were preserved last. Without being preserved they would have been deleted as well.
func (r *Reconciler) endSurplus(ctx context.Context, s *scope, kept []metav1.PartialObjectMetadata, limit int) error {
	slices.SortFunc(kept, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(machines.PreservedSince(&b).Compare(machines.PreservedSince(&a)), cmp.Compare(b.Name, a.Name))
	})
	surplus := len(kept) - limit
	var failures []error
	for i := 0; i < len(kept) && surplus > 0; i++ {
		machine := &clusterv1.Machine{ObjectMeta: kept[i].ObjectMeta}
		if machines.Preservation(machine) != "" {
			// A user has requested it.
			continue
		}
		surplus--
		if !machine.DeletionTimestamp.IsZero() {
			continue
		}
		err := r.Client.Delete(ctx, machine, client.Preconditions{UID: &machine.UID, ResourceVersion: &machine.ResourceVersion})
		if err == nil {
			r.eventAbout(s, machine, preservationEndedEvent, "Delete",
				"Machine %s is not kept for inspection: the limit is %d, and others were kept first", machine.Name, limit)
			continue
		}
		failures = append(failures, errors.Wrapf(persist.IgnoreGone(err),
			"deleting Machine %s, which is one too many to be preserved", machine.Name))
	}
	return kerrors.NewAggregate(failures)
}

// preserve releases a Machine for inspection, in the version in which it was read.
func (r *Reconciler) preserve(ctx context.Context, s *scope, machine *clusterv1.Machine, why string) error {
	kept := machine.DeepCopy()
	machines.Preserve(kept, s.Object, s.Now, s.Now.Add(r.preserveTimeout()))
	delete(kept.Annotations, AdoptedAnnotation)
	if err := r.Client.Patch(ctx, kept, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Wrapf(persist.IgnoreGone(err), "preserving Machine %s", machine.Name)
	}
	until := kept.Annotations[machines.PreserveUntilAnnotation]
	ctrl.LoggerFrom(ctx).Info("Preserved a Machine for inspection",
		"Machine", client.ObjectKeyFromObject(machine), "because", why, "until", until)
	s.machines = slices.DeleteFunc(slices.Clone(s.machines), func(m *clusterv1.Machine) bool { return m.UID == machine.UID })
	r.eventAbout(s, machine, preservedEvent, "Preserve", "Machine %s is kept for inspection until %s, since %s", machine.Name, until, why)
	return nil
}

func (r *Reconciler) preserveTimeout() time.Duration {
	if r.PreserveTimeout == 0 {
		return DefaultPreserveTimeout
	}
	return r.PreserveTimeout
}
