package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
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
	if s.endsWithTarget() || s.connection == nil && s.mayGiveUp() {
		return outcome.Continue()
	}
	if s.connection != nil && s.node == nil && !s.mayJoinLate() {
		if s.nodeErr != nil {
			s.timedOut(NodesLeftEvent, "DeleteNode", "Nodes are left behind: "+s.nodeErr.Error())
		}
		s.recordGoneNode()
		return outcome.Continue()
	}
	start := s.nodeDeletionStart()
	seconds := ptr.Deref(s.Object.Spec.Deletion.NodeDeletionTimeoutSeconds, defaultNodeDeletionSeconds)
	rest, limited := remaining(metav1.NewTime(start), time.Duration(seconds)*time.Second, s.Now)
	if s.connection == nil {
		rest = max(rest, start.Add(s.options.RemoteConditionsGracePeriod).Sub(s.Now))
	}
	if limited && rest <= 0 {
		s.timedOut(NodeDeletionTimedOutEvent, "DeleteNode", s.leavingNodeName()+
			" could not be deleted within spec.deletion.nodeDeletionTimeoutSeconds and is left behind")
		return outcome.Continue()
	}
	if s.connection == nil {
		s.recordNodeDeletion(start)
		return s.awaitConnection(clusterv1.MachineDeletingDeletingNodeReason, rest)
	}
	deleted, err := r.tryDeleteNode(ctx, s)
	if deleted {
		if s.node != nil {
			s.nodeDeleted = s.node.Name
		}
		return outcome.Continue()
	}
	if end, soon := s.soonAnswered(err); soon {
		return end
	}
	if pending := unanswered(err); pending != nil && pending.Since.Before(start) {
		start, rest = pending.Since, rest-start.Sub(pending.Since)
	}
	s.recordNodeDeletion(start)
	return s.awaitNodeDeletion(ctx, start, err, rest, limited)
}

// tryDeleteNode deletes the Node. The error is a *remote.PendingError until the API server has
// answered. It is false without an error while the Node has finalizers of others.
func (r *Reconciler) tryDeleteNode(ctx context.Context, s *scope) (deleted bool, err error) {
	if s.node == nil {
		if err := r.readLateNode(ctx, s); err != nil || s.node == nil {
			return err == nil, err
		}
	}
	if !s.node.DeletionTimestamp.IsZero() {
		return false, nil
	}
	err = s.connection.DeleteNode(s.owner(), s.node)
	if nodeIsGone(s.node, err) {
		return true, nil
	}
	return false, errors.Wrapf(err, "deleting Node %s of Machine %s", s.node.Name, s.Key())
}

// nodeIsGone reports whether a Node does not exist after the answer to its deletion: it was gone, or nothing holds it.
func nodeIsGone(node *corev1.Node, answer error) bool {
	return persist.Gone(answer) || answer == nil && len(node.Finalizers) == 0
}

// awaitNodeDeletion reports what delays the deletion of the Node, and waits.
func (s *scope) awaitNodeDeletion(ctx context.Context, start time.Time, err error, rest time.Duration, limited bool) outcome.Outcome {
	end := outcome.Wait()
	var message string
	switch pending := unanswered(err); {
	case err == nil:
		message = fmt.Sprintf("%s is being deleted %s and waits for %s", s.leavingNodeName(), since(start), listFinalizers(s.node.Finalizers))
	case pending != nil:
		message = fmt.Sprintf("%s is being deleted %s: %s", s.leavingNodeName(), since(start), pending)
	default:
		ctrl.LoggerFrom(ctx).Error(err, "Deleting the Node is tried again")
		message = fmt.Sprintf(
			"%s cannot be deleted %s and is tried again every %s: %s",
			s.leavingNodeName(),
			since(start),
			nodeDeletionRetry,
			reasonWithWords(err),
		)
		end = outcome.WaitFor(nodeDeletionRetry)
	}
	s.progress = deletion{clusterv1.MachineDeletingDeletingNodeReason, message}
	if limited {
		end = end.And(outcome.WaitFor(rest))
	}
	return end
}

// observeLeavingNode finds the Node that is deleted with a Machine: the one that it was linked with, unless that is another
// machine's by now; without a link the one with its provider ID. Another Node that claims the provider ID of a
// linked Machine stays, also once the linked one is deleted.
func (r *Reconciler) observeLeavingNode(ctx context.Context, s *scope) outcome.Outcome {
	end := r.observeNode(ctx, s)
	linked := s.Object.Status.NodeRef.Name
	if s.node != nil && linked == "" {
		// The infrastructure, by which the Node is known, is deleted before the Node.
		s.Object.Status.NodeRef.Name = s.node.Name
	}
	if s.connection == nil || s.unproven() || linked == "" || s.node != nil && s.node.Name == linked {
		return end
	}
	node, err := s.connection.Node(linked)
	if err != nil {
		return outcome.FromError(errors.Wrapf(err, "reading the Node of Machine %s", s.Key()))
	}
	if node != nil && node.Spec.ProviderID != "" && node.Spec.ProviderID != s.Object.Spec.ProviderID {
		node = nil
	}
	s.node, s.nodeErr = node, nil
	return end
}

// mayJoinLate reports whether a Node of the Machine may exist that has never been seen: the Machine was deleted before
// its Node had joined.
func (s *scope) mayJoinLate() bool {
	return !s.Object.Status.NodeRef.IsDefined() && !s.unproven() && s.nodeErr == nil
}

// readLateNode reads from the server a Node that may have joined just before the machine went, and be younger than
// the cache.
func (r *Reconciler) readLateNode(ctx context.Context, s *scope) error {
	nodes, err := s.connection.LookUpNodes(s.owner(), s.Object.Spec.ProviderID)
	if err != nil || len(nodes) == 0 {
		return err
	}
	return r.identify(ctx, s, nodes)
}

// leavingNodeName names the Node as well as is known.
func (s *scope) leavingNodeName() string {
	switch {
	case s.node != nil:
		return "Node " + s.node.Name
	case s.Object.Status.NodeRef.IsDefined():
		return "Node " + s.Object.Status.NodeRef.Name
	}
	return "A Node with the provider ID " + s.Object.Spec.ProviderID
}

// nodeDeletionStart returns when the deletion of the Node was first tried: now, if it was not. Anyone who may write Machines can
// write the annotation: a time to come counts as now.
func (s *scope) nodeDeletionStart() time.Time {
	start, err := time.Parse(time.RFC3339, s.Object.Annotations[NodeDeletionStartAnnotation])
	if err != nil || start.After(s.Now) {
		return s.Now
	}
	return start
}

func (s *scope) recordNodeDeletion(start time.Time) {
	metav1.SetMetaDataAnnotation(&s.Object.ObjectMeta, NodeDeletionStartAnnotation, start.UTC().Format(time.RFC3339))
}
