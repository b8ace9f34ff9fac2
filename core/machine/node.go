package machine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
)

// SeveralNodesError means that more than one Node claims the provider ID of a Machine.
type SeveralNodesError struct {
	// ProviderID is the provider ID in question.
	ProviderID string
	// Nodes are the names of the Nodes, sorted.
	Nodes []string
}

func newSeveralNodesError(providerID string, names []string) *SeveralNodesError {
	slices.Sort(names)
	return &SeveralNodesError{ProviderID: providerID, Nodes: names}
}

// Error names the Nodes and the remedy.
func (e *SeveralNodesError) Error() string {
	return fmt.Sprintf("Nodes %s all have the provider ID %s: delete those that are not the Machine's", few(e.Nodes), e.ProviderID)
}

// observeNode finds the Machine's Node in the target cluster.
func (r *Reconciler) observeNode(ctx context.Context, s *scope) outcome.Outcome {
	connection, err := r.Connections.Get(s.clusterKey())
	if err != nil {
		errors.As(err, &s.disconnection)
		return outcome.Wait()
	}
	s.connection = connection
	if s.Object.Spec.ProviderID == "" {
		return outcome.Wait()
	}
	nodes, err := connection.NodesWithProviderID(s.Object.Spec.ProviderID)
	if err == nil {
		err = r.identify(ctx, s, nodes)
	}
	if err != nil {
		return outcome.FromError(err)
	}
	if s.node == nil || s.undetermined() {
		return outcome.Wait()
	}
	return outcome.Continue()
}

// reconcileNode links the Machine with its Node as soon as that is known, and synchronizes the Node's labels, annotations and
// taints.
func (r *Reconciler) reconcileNode(ctx context.Context, s *scope) outcome.Outcome {
	if s.undetermined() {
		// Whose Node it is is not known yet.
		return outcome.Wait()
	}
	if end := r.observeNode(ctx, s); s.node == nil || !end.Finished() {
		return end
	}
	s.link()
	s.preserveByNode()
	if info := inJSON(s.node.Status.NodeInfo); !equality.Semantic.DeepEqual(s.Object.Status.NodeInfo, info) {
		s.Object.Status.NodeInfo = info
	}
	return r.syncNode(ctx, s)
}

// inJSON returns a copy as JSON has it, as which a Machine is written: without what is not UTF-8. API servers take that from a Node over
// protobuf, and a Machine's copy would differ from it for ever.
func inJSON(info corev1.NodeSystemInfo) *corev1.NodeSystemInfo {
	for fields, i := reflect.ValueOf(&info).Elem(), 0; i < fields.NumField(); i++ {
		if field := fields.Field(i); field.Kind() == reflect.String {
			field.SetString(strings.ToValidUTF8(field.String(), "\uFFFD"))
		}
	}
	return info.DeepCopy()
}

// link records the Node in the Machine. A machine that joins under another name, as after its disk was recreated, is
// another Node of the same Machine, if there is evidence for the name (see chooseNode).
func (s *scope) link() {
	before := s.Object.Status.NodeRef.Name
	if before == s.node.Name {
		return
	}
	s.Object.Status.NodeRef = clusterv1.MachineNodeReference{Name: s.node.Name}
	if before != "" {
		s.events.Normal(NodeReplacedEvent, "Link", "%s", "Node "+s.node.Name+" has taken the place of Node "+before)
	}
}
