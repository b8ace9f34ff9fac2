package machine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/outcome"
)

const (
	// NodeDeletionStartAnnotation records on a Machine when the deletion of its Node was first tried, in RFC 3339.
	// It is only written when the first try did not succeed, and lets the timeout survive a restart of the core.
	NodeDeletionStartAnnotation = "machine.millwright.dev/node-deletion-started"
	// defaultNodeDeletionSeconds is the timeout of a Machine that sets none, as the Cluster API defines it.
	defaultNodeDeletionSeconds = 10
	// nodeDeletionRetry is the pause between attempts.
	nodeDeletionRetry = 2 * time.Second
)

// deleteNode removes the Machine's Node from the target cluster. The timeout begins with the first attempt, not
// with the deletion of the Machine, which may have been long ago when the drain took its time. While the target
// cluster cannot be reached at all, the Machine waits for it at least for the grace period of remote conditions.
func (r *Reconciler) deleteNode(ctx context.Context, s *scope) outcome.Outcome {
	node := s.nodeToDelete()
	if s.connection == nil && s.mayGiveUp() || s.connection != nil && node == nil {
		return outcome.Continue()
	}
	start := s.nodeDeletionStart()
	seconds := ptr.To(ptr.Deref(s.machine.Spec.Deletion.NodeDeletionTimeoutSeconds, defaultNodeDeletionSeconds))
	rest, limited := remaining(metav1.NewTime(start), seconds, s.now)
	if s.connection == nil {
		rest = max(rest, start.Add(s.options.RemoteConditionsGracePeriod).Sub(s.now))
	}
	if limited && rest <= 0 {
		r.Recorder.Eventf(s.original, nil, corev1.EventTypeWarning, "NodeDeletionTimedOut", "DeleteNode",
			"Node %s could not be deleted within spec.deletion.nodeDeletionTimeoutSeconds and is left behind", s.original.Status.NodeRef.Name)
		return outcome.Continue()
	}
	if s.connection == nil {
		s.recordNodeDeletion(start)
		return s.awaitConnection(clusterv1.MachineDeletingDeletingNodeReason, rest)
	}
	err := s.connection.Client.Delete(ctx, node, client.Preconditions{UID: ptr.To(node.UID)})
	if apierrors.IsNotFound(err) || err == nil && len(node.Finalizers) == 0 {
		return outcome.Continue()
	}
	s.recordNodeDeletion(start)
	return s.awaitNodeDeletion(ctx, node, err, rest, limited)
}

// awaitNodeDeletion reports what holds up the deletion of the Node, and comes back.
func (s *scope) awaitNodeDeletion(ctx context.Context, node *corev1.Node, err error, rest time.Duration, limited bool) outcome.Outcome {
	s.progress = deletion{clusterv1.MachineDeletingDeletingNodeReason, "Waiting for the finalizers of Node " + node.Name}
	end := outcome.Wait()
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(errors.Wrapf(err, "deleting Node %s of Machine %s", node.Name, s.key()), "Deleting the Node is tried again")
		s.progress.message = "Node " + node.Name + " cannot be deleted: " + string(apierrors.ReasonForError(err))
		end = outcome.WaitFor(nodeDeletionRetry)
	}
	if limited {
		end = end.And(outcome.WaitFor(rest))
	}
	return end
}

// nodeToDelete returns the Node that goes with the Machine: the one with its provider ID, else the one that it was
// linked with, unless that has become another machine's.
func (s *scope) nodeToDelete() *corev1.Node {
	if s.node != nil || s.connection == nil || !s.machine.Status.NodeRef.IsDefined() {
		return s.node
	}
	node, err := s.connection.Node(s.machine.Status.NodeRef.Name)
	if err != nil || node == nil {
		return nil
	}
	if node.Spec.ProviderID != "" && node.Spec.ProviderID != s.machine.Spec.ProviderID {
		return nil
	}
	return node
}

// nodeDeletionStart returns when the deletion of the Node was first tried: now, if it was not.
func (s *scope) nodeDeletionStart() time.Time {
	start, err := time.Parse(time.RFC3339, s.machine.Annotations[NodeDeletionStartAnnotation])
	if err != nil {
		return s.now
	}
	return start
}

func (s *scope) recordNodeDeletion(start time.Time) {
	metav1.SetMetaDataAnnotation(&s.machine.ObjectMeta, NodeDeletionStartAnnotation, start.UTC().Format(time.RFC3339))
}
