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
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/bootstrap/cloudconfig/ownership"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/remote"
)

// maxCleanupPause is the longest time after which a target cluster that could not be cleaned up is asked again.
const maxCleanupPause = 30 * time.Second

// beginDelete stops when the finalizer is removed already. What was created for the machine, in the target cluster and here, goes first
// otherwise; see CleanupTimeout for a target cluster that cannot be reached.
func (r *Reconciler) beginDelete(_ context.Context, s *scope) outcome.Outcome {
	r.forget(s.Key()) // Nothing enqueues the object when it is gone.
	if !controllerutil.ContainsFinalizer(s.Object, bootstrapv1.Finalizer) {
		s.skipSave = true
		return outcome.Wait()
	}
	return outcome.Continue()
}

func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.FromError(ofManagement(s.RemoveFinalizer(ctx, bootstrapv1.Finalizer)))
}

// belongings is what a CloudConfig that is being deleted may remove from a target cluster.
type belongings struct {
	names nodeaccess.Names
	// cluster is the Cluster's key.
	cluster client.ObjectKey
	// ownOnly means that only what carries the CloudConfig's own name is removed, since no Machine confirms that it is its.
	ownOnly bool
}

// belongings returns what is to be removed; nil when that is nothing. The Machine, as the API server has it, must confirm whose
// the CloudConfig is. When it is gone nothing of a machine that lives can have the names, unless they come from the status.
func (r *Reconciler) belongings(ctx context.Context, s *scope) (*belongings, error) {
	machine, err := readOwner(ctx, r.APIReader, s.Object)
	if err != nil {
		return nil, err
	}
	if machine != nil {
		if ownership.IsOfNamesake(s.Object, machine) {
			key := clusterKey(machine)
			return &belongings{names: nodeaccess.NamesFor(key.Namespace, key.Name, machine.Name), cluster: key, ownOnly: true}, nil
		}
		if why := ownership.Refuse(s.Object, machine); why != "" {
			s.events.Warning(cleanupSkippedEvent, "CleanUp", "Removed nothing from the target cluster: %s", why)
			return nil, nil
		}
		key := clusterKey(machine)
		return &belongings{names: nodeaccess.NamesFor(key.Namespace, key.Name, machine.Name), cluster: key}, nil
	}
	key := client.ObjectKey{Namespace: s.Object.Namespace, Name: s.Object.Labels[clusterv1.ClusterNameLabel]}
	if key.Name == "" {
		return nil, nil
	}
	if reference := ownership.Reference(s.Object); reference != nil {
		return &belongings{names: nodeaccess.NamesFor(key.Namespace, key.Name, reference.Name), cluster: key, ownOnly: true}, nil
	}
	names, ok := nodeaccess.NamesOf(s.Object.Status.Target.Name)
	if !ok {
		return nil, nil
	}
	inUse, err := r.inUse(ctx, key, names)
	if err != nil || inUse {
		return nil, err
	}
	return &belongings{names: names, cluster: key, ownOnly: true}, nil
}

// inUse reports whether a Machine of the Cluster has these names in its target cluster.
func (r *Reconciler) inUse(ctx context.Context, cluster client.ObjectKey, names nodeaccess.Names) (bool, error) {
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(cluster.Namespace)); err != nil {
		return false, errors.Wrap(err, "listing Machines")
	}
	return slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool {
		return nodeaccess.NamesFor(m.Namespace, m.Spec.ClusterName, m.Name) == names
	}), nil
}

func (r *Reconciler) cleanTarget(ctx context.Context, s *scope) outcome.Outcome {
	b, err := r.belongings(ctx, s)
	if err != nil || b == nil {
		return outcome.FromError(err)
	}
	if turn := r.takeTurn(s, b.cluster); !turn.Finished() {
		return turn
	}
	live, err := r.Targets.GetUncachedClient(ctx, b.cluster)
	if err == nil {
		if s.dataSecret, err = r.dataSecret(ctx, s, s.Object.Status.DataSecretName); err != nil {
			return outcome.FromError(err)
		}
		s.target = &nodeaccess.Machine{
			Client: live, Names: b.names, Config: client.ObjectKeyFromObject(s.Object).String(), Namespace: r.TargetNamespace, OwnOnly: b.ownOnly,
		}
		err = r.removeFromTarget(ctx, s)
	}
	if err == nil || persist.LostRace(err) && s.Now.Before(r.cleanupDeadline(s)) {
		return outcome.FromError(err)
	}
	return r.giveUpOrWait(ctx, s, b, err)
}

// removeFromTarget removes what the machine has in its target cluster. Every error of it is the target's.
func (r *Reconciler) removeFromTarget(ctx context.Context, s *scope) error {
	r.Outcomes.Forget(s.target.Names)
	ids := s.recordedTokens()
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

// unreachable reports whether the error is about the way to the target cluster, not an answer from it.
func unreachable(err error) bool {
	if remote.IsNotConnected(err) {
		return true
	}
	return apierrors.ReasonForError(errors.Cause(err)) == metav1.StatusReasonUnknown && !apierrors.IsInternalError(err) && !persist.Denied(err)
}

// cleanupDeadline is when what the target cluster holds for the machine is left there.
func (r *Reconciler) cleanupDeadline(s *scope) time.Time {
	return s.Object.DeletionTimestamp.Add(r.CleanupTimeout)
}

// giveUpOrWait waits for a target cluster that cannot be reached or refuses, until CleanupTimeout after the
// deletion was asked for. Without its Cluster it is not awaited at all. What stays behind then is
// harmless: tokens expire, and the roles are bound to groups and a Node that no longer exist.
func (r *Reconciler) giveUpOrWait(ctx context.Context, s *scope, b *belongings, failure error) outcome.Outcome {
	key := b.cluster
	cluster := &clusterv1.Cluster{}
	err := r.Client.Get(ctx, key, cluster)
	if client.IgnoreNotFound(err) != nil {
		return outcome.FromError(errors.Wrapf(err, "reading Cluster %s", key.Name))
	}
	why := fmt.Sprintf("Cluster %s cannot be reached", key.Name)
	if !unreachable(failure) {
		why = fmt.Sprintf("Cluster %s answers: %s", key.Name, failure)
	}
	deadline := r.cleanupDeadline(s)
	if err == nil && s.Now.Before(deadline) {
		ctrl.LoggerFrom(ctx).Info("Waiting to clean up in the target cluster", "cluster", key.Name, "failure", failure.Error())
		wait := s.awaitsFor(s.until(deadline), bootstrapv1.WaitingForConnectionReason, fmt.Sprintf(
			"%s. What it holds for this machine (%s) is to be removed since %s, and is left there after %s",
			why, b.names.Object(), instant(s.Object.DeletionTimestamp.Time), instant(deadline)))
		if remote.IsNotConnected(failure) {
			// A connection is an event, a better answer is not.
			return wait
		}
		// The pauses grow with the wait.
		return wait.And(outcome.WaitFor(min(max(s.Now.Sub(s.Object.DeletionTimestamp.Time)/2, time.Second), maxCleanupPause)))
	}
	s.events.Warning(cleanupSkippedEvent, "CleanUp", "Left Secret, Role and RoleBinding %s and expiring tokens: %s", b.names.Object(), why)
	return outcome.Continue()
}

// deleteDataSecret deletes the user data, which the garbage collector would do too, but later.
func (r *Reconciler) deleteDataSecret(ctx context.Context, s *scope) outcome.Outcome {
	secret, err := r.dataSecret(ctx, s, s.Object.Name)
	if err != nil || secret == nil || !metav1.IsControlledBy(secret, s.Object) {
		return outcome.FromError(err)
	}
	uid := secret.UID
	err = r.Client.Delete(ctx, secret, client.Preconditions{UID: &uid})
	return outcome.FromError(ofManagement(errors.Wrapf(persist.IgnoreGone(err), "deleting Secret %s", secret.Name)))
}
