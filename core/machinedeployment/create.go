package machinedeployment

import (
	"context"
	"strconv"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/safety/rewritten"
)

// lookAgain is when a deployment that waits for the cache to show a set, or its own write, is requeued. The event
// comes sooner, unless the set is deleted before the cache has shown it.
const lookAgain = 5 * time.Second

// createSet makes the current set, without replicas, and then scales it: a creation whose answer was lost may take effect
// when another set has long been current, and brings no Machines then.
func (r *Reconciler) createSet(ctx context.Context, s *scope, plan plan) outcome.Outcome {
	unknown, err := r.unknownSets(ctx, s)
	if err != nil {
		return outcome.FromError(err)
	}
	if unknown || orphaning(s) {
		return untilShown(s)
	}
	if len(s.blockers) > 0 {
		return outcome.WaitFor(rewritten.Retry)
	}
	left, err := r.findOrphans(ctx, s)
	if err != nil {
		return outcome.FromError(err)
	}
	set := newSet(s, left)
	sent := set.DeepCopy()
	switch err := r.Client.Create(ctx, set); {
	case persist.NameTaken(err) && left.count > 0:
		// The set that has left the Machines is not gone yet.
		return untilShown(s)
	case persist.NameTaken(err):
		return r.nameTaken(ctx, s, client.ObjectKeyFromObject(set))
	case err != nil:
		// It may take effect yet. The next attempt has the same name.
		return outcome.FromError(errors.Wrapf(err, "creating MachineSet %s", client.ObjectKeyFromObject(set)))
	}
	if !r.noteCreated(s, sent, set) {
		return outcome.WaitFor(rewritten.Retry)
	}
	r.Sets.Wrote(set)
	s.sets = append(s.sets, set)
	if !r.storedAsSent(s, sent, set) {
		// It gets no Machines.
		return outcome.WaitFor(lookAgain)
	}
	s.current, s.created = set, true
	ctrl.LoggerFrom(ctx).Info("Created MachineSet", "MachineSet", set.Name, "replicas", plan.createReplicas, "reason", plan.createReason)
	r.event(s, set, CreatedEvent, "CreateMachineSet",
		"Created MachineSet %s for %d replicas: %s", set.Name, plan.createReplicas, plan.createReason)
	return r.scaleCreated(ctx, s, plan.createReplicas)
}

// scaleCreated scales the set that was just created. Should that fail, the next plan finds it without replicas.
func (r *Reconciler) scaleCreated(ctx context.Context, s *scope, replicas int) outcome.Outcome {
	if replicas == desired(s.current) || desired(s.current) > 0 {
		// The next plan scales a set that has adopted Machines.
		return outcome.Continue()
	}
	scaled := s.current.DeepCopy()
	scaled.Spec.Replicas = ptr.To(int32(replicas))
	if err := r.Client.Patch(ctx, scaled, client.MergeFrom(s.current)); err != nil {
		return outcome.FromError(errors.Wrapf(err, "scaling MachineSet %s", client.ObjectKeyFromObject(scaled)))
	}
	r.Sets.Wrote(scaled)
	s.sets[len(s.sets)-1], s.current = scaled, scaled
	return outcome.Continue()
}

// untilShown ends a reconcile that knows of a set which the cache does not show: nothing can be concluded.
func untilShown(s *scope) outcome.Outcome {
	s.stale = true
	return outcome.WaitFor(lookAgain)
}

// nameTaken finds out what has the name of the new set. When it is that set, created by an attempt before or by another
// core, the cache will show it. Anything else has its name passed over, which is written before the next name is used: if
// it were not, and what is in the way went, a process that knows nothing of the next name would create a second set.
func (r *Reconciler) nameTaken(ctx context.Context, s *scope, key client.ObjectKey) outcome.Outcome {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineSet"))
	if err := r.APIReader.Get(ctx, key, found); err != nil {
		if apierrors.IsNotFound(err) {
			// It was deleted since, and the name is free.
			return outcome.WaitFor(lookAgain)
		}
		return outcome.FromError(errors.Wrapf(err, "reading MachineSet %s", key))
	}
	because := inTheWay(s, found)
	if because == "" {
		return untilShown(s)
	}
	count := strconv.FormatUint(passedOver(s.deployment)+1, 10)
	if err := s.annotate(ctx, PassedOverNamesAnnotation, count); err != nil {
		return outcome.FromError(errors.Wrapf(err, "skipping the name of MachineSet %s, which is taken", key))
	}
	r.warn(s, found, NameTakenEvent, "CreateMachineSet",
		"MachineSet %s has the name of the MachineSet to be created, and is another one: %s. The new one gets another name", key.Name, because)
	// The event of that write enqueues the deployment.
	return outcome.WaitFor(lookAgain)
}
