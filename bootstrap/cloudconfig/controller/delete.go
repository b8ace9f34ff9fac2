package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/ownership"
	"millwright.dev/bootstrap/cloudconfig/target"
	"millwright.dev/contracts/remote"
)

// maxCleanupPause is the longest time after which a target cluster that could not be cleaned up is asked again.
const maxCleanupPause = 30 * time.Second

// reconcileDelete removes what was made for the machine, in the target cluster and here, and then the
// finalizer. See CleanupTimeout for a target cluster that cannot be reached.
func (r *Reconciler) reconcileDelete(ctx context.Context, s *scope, original *bootstrapv1.CloudConfig) (ctrl.Result, error) {
	r.overdue.forget(client.ObjectKeyFromObject(s.config)) // Nothing wakes this controller when the object is gone.
	if !controllerutil.ContainsFinalizer(s.config, bootstrapv1.Finalizer) {
		return ctrl.Result{}, nil
	}
	err := run(ctx, s, []step{r.cleanTarget, r.deleteDataSecret})
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, err
	}
	if s.staysSaid() {
		return s.result(), nil
	}
	if err != nil || s.wait != nil {
		err = s.explain(err)
		if patchErr := r.patchStatus(ctx, original, s.config, deletingConditions(s)); patchErr != nil {
			return ctrl.Result{}, patchErr
		}
		return s.result(), err
	}
	controllerutil.RemoveFinalizer(s.config, bootstrapv1.Finalizer)
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	return ctrl.Result{}, errors.Wrap(client.IgnoreNotFound(r.Client.Patch(ctx, s.config, patch)), "removing the finalizer")
}

// belongings is what a CloudConfig that is being deleted may remove from a target cluster.
type belongings struct {
	names target.Names
	// cluster is the Cluster's key.
	cluster client.ObjectKey
	// ownOnly says that only what carries the CloudConfig's own name is removed, since no Machine confirms that it is its.
	ownOnly bool
}

// belongings returns what is to be removed; nil when that is nothing. The Machine, as the API server has it, must confirm whose
// the CloudConfig is. When it is gone nothing of a machine that lives can have the names, unless they come from the status.
func (r *Reconciler) belongings(ctx context.Context, s *scope) (*belongings, error) {
	machine, err := readOwner(ctx, r.Live, s.config)
	if err != nil {
		return nil, err
	}
	if machine != nil {
		if why := ownership.Refuse(s.config, machine); why != "" {
			r.warn(s.config, "CleanupSkipped", "CleanUp", "Removed nothing from the target cluster: %s", why)
			return nil, nil
		}
		key := clusterKey(machine)
		return &belongings{names: target.NamesFor(key.Namespace, key.Name, machine.Name), cluster: key}, nil
	}
	key := client.ObjectKey{Namespace: s.config.Namespace, Name: s.config.Labels[clusterv1.ClusterNameLabel]}
	if key.Name == "" {
		return nil, nil
	}
	if reference := ownership.Reference(s.config); reference != nil {
		return &belongings{names: target.NamesFor(key.Namespace, key.Name, reference.Name), cluster: key, ownOnly: true}, nil
	}
	names, ok := target.NamesOf(s.config.Status.Target.Name)
	if !ok {
		return nil, nil
	}
	inUse, err := r.inUse(ctx, key, names)
	if err != nil || inUse {
		return nil, err
	}
	return &belongings{names: names, cluster: key, ownOnly: true}, nil
}

// inUse says whether a Machine of the Cluster has these names in its target cluster.
func (r *Reconciler) inUse(ctx context.Context, cluster client.ObjectKey, names target.Names) (bool, error) {
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return false, errors.Wrap(err, "listing Machines")
	}
	return slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool {
		return target.NamesFor(m.Namespace, m.Spec.ClusterName, m.Name) == names
	}), nil
}

func (r *Reconciler) cleanTarget(ctx context.Context, s *scope) error {
	b, err := r.belongings(ctx, s)
	if err != nil || b == nil || !r.takeTurn(s, b.cluster) {
		return err
	}
	live, err := r.Targets.GetUncachedClient(ctx, b.cluster)
	if err == nil {
		if s.dataSecret, err = r.dataSecret(ctx, s, s.config.Status.DataSecretName); err != nil {
			return err
		}
		s.target = &target.Machine{
			Client: live, Names: b.names, Config: client.ObjectKeyFromObject(s.config).String(), Namespace: r.TargetNamespace, OwnOnly: b.ownOnly,
		}
		err = r.removeFromTarget(ctx, s)
	}
	if err == nil || apierrors.IsConflict(err) && s.now.Before(r.cleanupDeadline(s)) {
		return err
	}
	return r.giveUpOrWait(ctx, s, b, err)
}

// removeFromTarget removes what the machine has in its target cluster. Every error of it is the target's.
func (r *Reconciler) removeFromTarget(ctx context.Context, s *scope) error {
	r.Outcomes.Forget(s.target.Names)
	ids := s.recorded()
	secret, err := s.target.NodeSecret(ctx)
	if err != nil && !collides(err) {
		return err
	}
	if token, ok := joinTokenOf(secret); ok {
		ids = append(ids, token.ID)
	}
	if token, ok := s.downloadToken(); ok {
		ids = append(ids, token.ID)
	}
	return s.target.RemoveAll(ctx, ids...)
}

// unreachable says whether the error is about the way to the target cluster, not an answer from it.
func unreachable(err error) bool {
	if remote.IsNotConnected(err) {
		return true
	}
	return apierrors.ReasonForError(errors.Cause(err)) == metav1.StatusReasonUnknown && !apierrors.IsInternalError(err)
}

// cleanupDeadline is when what the target cluster holds for the machine is left there.
func (r *Reconciler) cleanupDeadline(s *scope) time.Time {
	return s.config.DeletionTimestamp.Add(r.CleanupTimeout)
}

// giveUpOrWait waits for a target cluster that cannot be reached or refuses, until CleanupTimeout after the
// deletion was asked for. Without its Cluster it is not awaited at all. What stays behind then is
// harmless: tokens expire, and the roles are bound to groups and a Node that no longer exist.
func (r *Reconciler) giveUpOrWait(ctx context.Context, s *scope, b *belongings, failure error) error {
	key := b.cluster
	cluster := &clusterv1.Cluster{}
	err := r.Client.Get(ctx, key, cluster)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrapf(err, "reading Cluster %s", key.Name)
	}
	why := fmt.Sprintf("Cluster %s cannot be reached", key.Name)
	if !unreachable(failure) {
		why = fmt.Sprintf("Cluster %s answers: %s", key.Name, failure)
	}
	deadline := r.cleanupDeadline(s)
	if err == nil && s.now.Before(deadline) {
		ctrl.LoggerFrom(ctx).Info("Waiting to clean up in the target cluster", "cluster", key.Name, "failure", failure.Error())
		s.awaits(bootstrapv1.WaitingForConnectionReason, fmt.Sprintf(
			"%s. What it holds for this machine (%s) is to be removed since %s, and is left there after %s",
			why, b.names.Object(), instant(s.config.DeletionTimestamp.Time), instant(deadline)))
		s.wake(deadline)
		if !remote.IsNotConnected(failure) {
			// A connection is an event, a better answer is not. The pauses grow with the wait.
			s.wake(s.now.Add(min(max(s.now.Sub(s.config.DeletionTimestamp.Time)/2, time.Second), maxCleanupPause)))
		}
		return nil
	}
	r.warn(s.config, "CleanupSkipped", "CleanUp", "Left Secret, Role and RoleBinding %s and expiring tokens: %s", b.names.Object(), why)
	return nil
}

// deleteDataSecret deletes the user data, which the garbage collector would do too, but later.
func (r *Reconciler) deleteDataSecret(ctx context.Context, s *scope) error {
	secret, err := r.dataSecret(ctx, s, s.config.Name)
	if err != nil || secret == nil || !metav1.IsControlledBy(secret, s.config) {
		return err
	}
	uid := secret.UID
	err = r.Client.Delete(ctx, secret, client.Preconditions{UID: &uid})
	return errors.Wrapf(client.IgnoreNotFound(err), "deleting Secret %s", secret.Name)
}
