package machineset

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// DefaultPreserveTimeout is how long preserved Machines stay: as with Gardener's machine-controller-manager.
const DefaultPreserveTimeout = 96 * time.Hour

// preservedEvent is recorded when a Machine is kept for inspection, and is of the set no more.
const preservedEvent = "Preserved"

// preserveNow lets those Machines go that somebody wants to inspect at once. They are of the set no more, and others are created.
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
		kept, err := r.toPreserve(ctx, s, machine)
		if err == nil && kept {
			err = r.preserve(ctx, s, machine, "it has failed")
		}
		switch {
		case err != nil:
			failures = append(failures, err)
		case !kept:
			rest = append(rest, machine)
		}
	}
	return rest, failures
}

// toPreserve reports whether a Machine that has failed is to be kept: since its annotation says so, or since fewer of its deployment
// are kept than are to be.
func (r *Reconciler) toPreserve(ctx context.Context, s *scope, machine *clusterv1.Machine) (bool, error) {
	switch machines.Preservation(machine) {
	case machines.PreserveNow, machines.PreserveWhenFailed:
		return true, nil
	case machines.PreserveNever:
		return false, nil
	}
	limit := r.PreserveFailedMax
	if s.deployment != nil {
		if own, err := strconv.Atoi(s.deployment.Annotations[machines.PreserveMaxAnnotation]); err == nil && own >= 0 {
			limit = own
		}
	}
	if limit == 0 {
		return false, nil
	}
	// Asked of the API server: the cache may not show those yet that were kept a moment ago.
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	err := r.APIReader.List(ctx, list, client.InNamespace(s.Object.Namespace),
		client.MatchingLabels{machines.PreservedLabel: machines.PreservedOf(s.Object)})
	return len(list.Items) < limit, errors.Wrapf(err, "listing the preserved Machines of MachineSet %s", s.Key())
}

// preserve lets a Machine go for inspection, in the version in which it was read.
func (r *Reconciler) preserve(ctx context.Context, s *scope, machine *clusterv1.Machine, why string) error {
	kept := machine.DeepCopy()
	machines.Preserve(kept, s.Object, s.Now.Add(r.preserveTimeout()))
	delete(kept.Annotations, AdoptedAnnotation)
	if err := r.Client.Patch(ctx, kept, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Wrapf(client.IgnoreNotFound(err), "preserving Machine %s", machine.Name)
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
