package machine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/external"
	"millwright.dev/core/machines"
)

// reconcileDelete observes what exists, and deletes it step by step. Each step requires those before it, derives its state from the
// two clusters, and so continues where another process has stopped.
func (r *Reconciler) reconcileDelete(ctx context.Context, s *scope) outcome.Outcome {
	observed := outcome.All(ctx, s, r.observeBootstrap, r.observeInfrastructure, r.observeLeavingNode, r.observeControlPlane)
	if observed.Err() != nil || s.undetermined() {
		return observed
	}
	r.recallDrain(s)
	return outcome.InOrder(ctx, s, r.preDrainHooks, r.drainNode, r.detachVolumes, r.preTerminateHooks,
		r.deleteInfrastructure, r.deleteBootstrap, r.detachFromGone, r.deleteNode, r.release)
}

// deleteBootstrap deletes the bootstrap config and waits until it is gone.
func (r *Reconciler) deleteBootstrap(ctx context.Context, s *scope) outcome.Outcome {
	return r.deleteReferenced(ctx, s, &s.bootstrap, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason)
}

// deleteInfrastructure deletes the infrastructure object and waits until it is gone, and the machine with it.
func (r *Reconciler) deleteInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	if s.unrecorded() {
		// Only the infrastructure object knows it so far, and the Node is found by it: it is recorded first.
		// The event of that write brings the next reconcile.
		s.progress = deletion{
			clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason,
			"Waiting for the deletion of " + external.Name(s.infrastructure.ref),
		}
		return outcome.Wait()
	}
	return r.deleteReferenced(ctx, s, &s.infrastructure, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
}

// deleteReferenced deletes the object behind a reference, and waits until it is gone.
func (r *Reconciler) deleteReferenced(ctx context.Context, s *scope, reference *reference, reason string) outcome.Outcome {
	if reference.foreign() {
		return outcome.Continue()
	}
	if reference.gone() {
		return r.confirmGone(ctx, s, reference)
	}
	name := external.Name(reference.ref)
	s.progress = deletion{reason, "Waiting for the deletion of " + name}
	if reference.err != nil {
		s.progress.message = external.UnusableCondition("", reference.ref, reference.err).Message
		return reference.failed(reference.err)
	}
	if begun := reference.object.GetDeletionTimestamp(); begun != nil {
		s.progress.message = fmt.Sprintf(
			"%s is being deleted %s and waits for %s",
			name,
			since(begun.Time),
			listFinalizers(reference.object.GetFinalizers()),
		)
		return outcome.Wait()
	}
	preconditions := external.DeletePreconditions(reference.object)
	if s.Object.Spec.ProviderID == "" || !reference.own {
		// It must not go with a provider ID, or with an owner, that the cache does not have yet.
		preconditions.ResourceVersion = ptr.To(reference.object.GetResourceVersion())
	}
	err := r.Client.Delete(ctx, reference.object.Unstructured, preconditions)
	switch {
	case external.Gone(err) && !persist.Denied(err):
		return outcome.Continue()
	case err != nil:
		if !persist.LostRace(err) {
			s.progress.message = fmt.Sprintf("%s cannot be deleted: %s", name, reasonWithWords(err))
		}
		return outcome.FromError(errors.Wrapf(err, "deleting %s of Machine %s", name, s.Key()))
	}
	// The watch reports in a moment that the object is being deleted, or gone; a condition before that would change at once.
	s.quiet = s.events.Empty()
	return outcome.Wait()
}

// infrastructureGone reports whether the infrastructure object does not exist.
func (s *scope) infrastructureGone() bool { return s.infrastructure.gone() }

// gone reports whether there is no object behind the reference.
func (r *reference) gone() bool {
	return !r.ref.IsDefined() || apierrors.IsNotFound(r.err) || external.NotInstalled(r.err)
}

// youngRetry is when a Machine is reconciled again whose object the cache does not show yet.
const youngRetry = 5 * time.Second

// confirmGone makes sure that an object that the Machine has never seen is not merely younger than the cache: then
// nothing would delete it any more. Its event triggers the next reconcile, unless it goes before the cache has shown it.
func (r *Reconciler) confirmGone(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	if !apierrors.IsNotFound(reference.err) || s.seen(reference) {
		return outcome.Continue()
	}
	resolved, err := r.Kinds.Resolve(ctx, reference.ref.GroupKind())
	if err != nil {
		return outcome.FromError(err)
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(resolved.GVK)
	// This client reads unstructured objects from the server.
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: s.Original.Namespace, Name: reference.ref.Name}, obj)
	switch {
	case external.Gone(err):
		return outcome.Continue()
	case err != nil:
		return outcome.FromError(errors.Wrapf(err, "reading %s of Machine %s", external.Name(reference.ref), s.Key()))
	}
	s.quiet = true
	return outcome.WaitFor(youngRetry)
}

// seen reports whether the Machine records that the object behind one of its references has existed.
func (s *scope) seen(reference *reference) bool {
	conditionType, done := s.recorded(reference)
	before := meta.FindStatusCondition(s.Original.Status.Conditions, conditionType)
	if done || before == nil {
		return done
	}
	return !slices.Contains(neverSeen, before.Reason) && before.Reason != clusterv1.ObjectDeletedReason &&
		before.Reason != clusterv1.NotReadyReason
}

// recorded is where the Machine records what it knows of the object behind one of its references: the type of a condition,
// and whether its part is done.
func (s *scope) recorded(reference *reference) (conditionType string, done bool) {
	initialization := s.Object.Status.Initialization
	if reference == &s.bootstrap {
		return clusterv1.MachineBootstrapConfigReadyCondition, ptr.Deref(initialization.BootstrapDataSecretCreated, false)
	}
	return clusterv1.MachineInfrastructureReadyCondition, ptr.Deref(initialization.InfrastructureProvisioned, false)
}

// skipNodeSteps reports whether drain and volumes are complete: the condition Deleting has reported that, the pre-terminate hooks were
// awaited, or the whole control plane is being deleted. An infrastructure object that is being deleted skips nothing, since its provider
// may keep the instance. If the object is gone, a ready Node shows that its Pods still run.
func (s *scope) skipNodeSteps() bool {
	return inframachine.MayTerminate(s.Original) || s.begun(preTerminateStart) || s.endsWithTarget() || s.infrastructure.foreign() ||
		s.infrastructureGone() && !s.nodeServes()
}

// nodeServes reports whether the Node is ready.
func (s *scope) nodeServes() bool {
	if s.node == nil {
		return false
	}
	for i := range s.node.Status.Conditions {
		if condition := &s.node.Status.Conditions[i]; condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// timedOut records an event about a step of the deletion whose timeout is over.
func (s *scope) timedOut(reason, action, note string) {
	s.events.Warning(reason, action, "%s", note)
}

// begin records that a part of the deletion has begun, unless it had, and returns when.
func (s *scope) begin(field func(*clusterv1.MachineDeletionStatus) *metav1.Time) metav1.Time {
	if s.Object.Status.Deletion == nil {
		s.Object.Status.Deletion = &clusterv1.MachineDeletionStatus{}
	}
	start := field(s.Object.Status.Deletion)
	if start.IsZero() {
		*start = metav1.NewTime(s.Now).Rfc3339Copy()
	}
	return *start
}

// begun reports whether a part of the deletion has begun.
func (s *scope) begun(field func(*clusterv1.MachineDeletionStatus) *metav1.Time) bool {
	return s.Object.Status.Deletion != nil && !field(s.Object.Status.Deletion).IsZero()
}

// shortReason is an error as a reason that may go into a condition: it stays the same, and has nothing of the request.
func shortReason(err error) string {
	if persist.Denied(err) {
		// Its code and reason are the webhook's, and may be those of something else.
		return "a webhook denies it"
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	if persist.NotDone(err) {
		return "the API server refuses it"
	}
	return "the API server did not answer"
}

// reasonWithWords returns shortReason, followed by the API server's message if it rejects the request: only that message names the policy.
func reasonWithWords(err error) string {
	if refusal := persist.Refusal(err); refusal != "" {
		return shortReason(err) + ": " + refusal
	}
	return shortReason(err)
}

// since is a moment as messages name it.
func since(moment time.Time) string { return "since " + moment.UTC().Format(time.RFC3339) }

// listFinalizers counts and names finalizers.
func listFinalizers(finalizers []string) string {
	sorted := slices.Sorted(slices.Values(finalizers))
	return fmt.Sprintf("%s: %s", machines.Plural(len(sorted), "finalizer"), strings.Join(sorted, ", "))
}

// remaining returns how much of a timeout is left since start; limited is false for no timeout, which is one that is not
// positive.
func remaining(start metav1.Time, timeout time.Duration, now time.Time) (rest time.Duration, limited bool) {
	if timeout <= 0 {
		return 0, false
	}
	return start.Add(timeout).Sub(now), true
}
