package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pkgerrors "github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/outcome"
)

// nodeConflictRetry is the pause before a patch that came too late for the Node's version is made anew.
const nodeConflictRetry = 200 * time.Millisecond

// SeveralNodesError says that more than one Node claims the provider ID of a Machine.
type SeveralNodesError struct {
	// ProviderID is the provider ID in question.
	ProviderID string
	// Nodes are the names of the Nodes, sorted.
	Nodes []string
}

// Error names the Nodes and the remedy.
func (e *SeveralNodesError) Error() string {
	return fmt.Sprintf("Nodes %s all have the provider ID %s: delete those that are not the Machine's", strings.Join(e.Nodes, ", "), e.ProviderID)
}

// observeNode finds the Machine's Node in the target cluster.
func (r *Reconciler) observeNode(_ context.Context, s *scope) outcome.Outcome {
	connection, err := r.Connections.Get(s.clusterKey())
	if err != nil {
		errors.As(err, &s.disconnection)
		return outcome.Wait()
	}
	s.connection = connection
	if s.machine.Spec.ProviderID == "" {
		return outcome.Wait()
	}
	nodes, err := connection.NodesWithProviderID(s.machine.Spec.ProviderID)
	if err != nil {
		return outcome.Fail(err)
	}
	switch len(nodes) {
	case 0:
		return outcome.Wait()
	case 1:
		s.node = nodes[0]
		return outcome.Continue()
	}
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	s.nodeErr = &SeveralNodesError{ProviderID: s.machine.Spec.ProviderID, Nodes: names}
	return outcome.Wait()
}

// reconcileNode links the Machine with its Node, and brings the Node's labels, annotations and taints in step.
func (r *Reconciler) reconcileNode(ctx context.Context, s *scope) outcome.Outcome {
	if end := r.observeNode(ctx, s); s.node == nil {
		return end
	}
	if err := r.syncNode(ctx, s); err != nil {
		if apierrors.IsNotFound(err) {
			s.node = nil
			return outcome.Wait()
		}
		if apierrors.IsConflict(err) {
			// The cache is behind. What it lacks may be a heartbeat, which is no event, so time has to do.
			return outcome.WaitFor(nodeConflictRetry)
		}
		return outcome.Fail(err)
	}
	s.link()
	if s.machine.Status.NodeInfo == nil || !equality.Semantic.DeepEqual(*s.machine.Status.NodeInfo, s.node.Status.NodeInfo) {
		s.machine.Status.NodeInfo = s.node.Status.NodeInfo.DeepCopy()
	}
	return outcome.Continue()
}

// link records the Node in the Machine. A machine that joins under another name, as after its disk was made anew, is
// another Node of the same Machine. The first one is no event: when it was stands in the condition NodeReady, and an event
// for each Machine would be one request more.
func (s *scope) link() {
	before := s.machine.Status.NodeRef.Name
	if before == s.node.Name {
		return
	}
	s.machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: s.node.Name}
	if before != "" {
		s.tell(corev1.EventTypeNormal, ReasonNodeReplaced, "Link", "Node "+s.node.Name+" has taken the place of Node "+before)
	}
}

// syncNode writes the differences between the Node and what the Machine wants of it, by one patch at most.
func (r *Reconciler) syncNode(ctx context.Context, s *scope) error {
	node := s.node.DeepCopy()
	result := SyncNode(node, s.wishes())
	if !result.Changed {
		return nil
	}
	patch := client.MergeFrom(s.node)
	if result.Taints {
		// Taints are replaced as a list, and others write them too.
		patch = client.MergeFromWithOptions(s.node, client.MergeFromWithOptimisticLock{})
	}
	if err := s.connection.Client.Patch(ctx, node, patch); err != nil {
		return pkgerrors.Wrapf(err, "patching Node %s of Machine %s", node.Name, s.key())
	}
	s.node = node
	return nil
}
