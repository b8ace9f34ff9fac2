package machine

import (
	"cmp"
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
)

// identity is what was found out about the Node of a Machine beside the Node itself.
type identity struct {
	// evidence is how well it is established that the provider ID is the Machine's own.
	evidence evidence
	// contested and refused describe what others claim; they do not change the status of the Machine's conditions.
	contested, refused string
}

// identify decides which of the Nodes with the Machine's provider ID is the Machine's Node, if any.
func (r *Reconciler) identify(ctx context.Context, s *scope, nodes []*corev1.Node) error {
	s.node, s.nodeErr = nil, nil
	s.identity = identity{
		evidence: evidenceOf(s.Object, observedOf(s.Object, s.infrastructure.object, s.infrastructure.err, s.infrastructure.own)),
	}
	if s.Object.Spec.ProviderID == "" {
		return nil
	}
	claimants, err := r.claimants(ctx, s, nodes)
	if err != nil {
		return err
	}
	holder, equals := holderOf(claimants)
	if holder != nil && holder.UID != s.Object.UID {
		s.nodeErr = &OtherMachineError{
			ProviderID: s.Object.Spec.ProviderID, Machine: client.ObjectKeyFromObject(holder), Equal: isAmong(s.Object, equals),
		}
		s.Object.Status.NodeRef, s.Object.Status.NodeInfo = clusterv1.MachineNodeReference{}, nil
		return nil
	}
	if s.identity.evidence == claimed {
		return nil
	}
	s.identity.contested = contested(s.Object.Spec.ProviderID, equals)
	return r.choose(ctx, s, nodes)
}

func isAmong(m *clusterv1.Machine, list []*clusterv1.Machine) bool {
	for _, other := range list {
		if other.UID == m.UID {
			return true
		}
	}
	return false
}

// choose decides between the Nodes that claim the provider ID of a Machine whose it is.
func (r *Reconciler) choose(ctx context.Context, s *scope, nodes []*corev1.Node) error {
	known, err := r.knownOfNode(s)
	if err != nil {
		return err
	}
	var unread error
	known.elsewhere = func(node string) string {
		name, err := r.machineOfNodeName(ctx, s, node, nodes)
		unread = cmp.Or(unread, err)
		return name
	}
	claims, byName, names := make([]nodeClaim, 0, len(nodes)), map[string]*corev1.Node{}, make([]string, 0, len(nodes))
	for _, node := range nodes {
		claims = append(claims, nodeClaim{node.Name, node.CreationTimestamp, writtenFor(node, s.Object)})
		byName[node.Name] = node
		names = append(names, node.Name)
	}
	chosen, several := known.chooseNode(claims)
	refused := known.refusal(s.Object.Spec.ProviderID, chosen, claims)
	if unread != nil {
		return unread
	}
	if several {
		s.nodeErr = newSeveralNodesError(s.Object.Spec.ProviderID, names)
		return nil
	}
	s.node = byName[chosen]
	s.identity.refused = refused
	if known.expected != "" && known.linked != "" && known.linked != known.expected {
		// An older core has accepted a claim.
		s.Object.Status.NodeRef, s.Object.Status.NodeInfo = clusterv1.MachineNodeReference{}, nil
	}
	return nil
}

// knownOfNode collects what is known about the Machine's Node without asking a Node.
func (r *Reconciler) knownOfNode(s *scope) (*nodeEvidence, error) {
	known := &nodeEvidence{
		hosts: index.HostNames(s.Object), linked: s.Object.Status.NodeRef.Name, machine: s.Object.Name,
		unconfirmed: s.identity.evidence == unconfirmed, created: s.Object.CreationTimestamp,
	}
	if !s.bootstrap.own {
		return known, nil
	}
	var err error
	known.expected, err = bootstrapconfig.At(s.bootstrap.object.Contract).NodeName(s.bootstrap.object.Unstructured)
	return known, errors.Wrap(err, "reading the name of the Node")
}

// machineOfNodeName finds another Machine of the same target cluster that a Node of that name belongs to by all appearances: it
// has that name, is linked with it, or its infrastructure reports that host name. The name of the other Machine is returned, ""
// for none.
func (r *Reconciler) machineOfNodeName(ctx context.Context, s *scope, node string, nodes []*corev1.Node) (string, error) {
	for _, field := range []string{index.NodeName, index.HostName} {
		list := &clusterv1.MachineList{}
		if err := r.Client.List(ctx, list, client.MatchingFields{field: node}, client.UnsafeDisableDeepCopy); err != nil {
			return "", errors.Wrapf(err, "finding the Machines of Node %s", node)
		}
		for i := range list.Items {
			switch other := &list.Items[i]; {
			case other.UID == s.Object.UID || !r.sameTarget(s, other, nodes):
			case other.Namespace != s.Object.Namespace:
				return client.ObjectKeyFromObject(other).String(), nil
			default:
				return other.Name, nil
			}
		}
	}
	return "", nil
}

// claimants are the Machine and those others with its provider ID whose Cluster has the same target cluster, whichever
// namespace and whichever core they are of.
func (r *Reconciler) claimants(ctx context.Context, s *scope, nodes []*corev1.Node) ([]claimant, error) {
	all := []claimant{{s.Object, s.identity.evidence, linkedWith(s.Object, nodes)}}
	list := &clusterv1.MachineList{}
	if err := r.Client.List(
		ctx,
		list,
		client.MatchingFields{index.ProviderID: s.Object.Spec.ProviderID},
		client.UnsafeDisableDeepCopy,
	); err != nil {
		return nil, errors.Wrapf(err, "finding other Machines with the provider ID of Machine %s", s.Key())
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID == s.Object.UID || !r.sameTarget(s, other, nodes) {
			continue
		}
		object, err := r.Kinds.Get(ctx, other.Spec.InfrastructureRef, other.Namespace, s.Request())
		if external.NotSynced(err) {
			s.rivalErr = err
		}
		observed := observedOf(other, object, err, err == nil && metav1.IsControlledBy(object, other))
		all = append(all, claimant{other, evidenceOf(other, observed), linkedWith(other, nodes)})
	}
	return all, nil
}

// sameTarget reports whether another Machine is of the same target cluster. Two Clusters may have one, by equal kubeconfigs or
// by --target-kubeconfig: then they see the same Nodes. For one that is not connected, the annotations of the Node decide.
func (r *Reconciler) sameTarget(s *scope, other *clusterv1.Machine, nodes []*corev1.Node) bool {
	cluster := types.NamespacedName{Namespace: other.Namespace, Name: other.Spec.ClusterName}
	if cluster == s.clusterKey() {
		return true
	}
	connection, err := r.Connections.Get(cluster)
	for _, node := range nodes {
		if err != nil {
			if writtenFor(node, other) {
				return true
			}
			continue
		}
		if seen, err := connection.Node(node.Name); err == nil && seen != nil && seen.UID == node.UID {
			return true
		}
	}
	return false
}

// writtenFor reports whether a Node names the Machine as its own.
func writtenFor(node *corev1.Node, m *clusterv1.Machine) bool {
	return node.Annotations[clusterv1.ClusterNamespaceAnnotation] == m.Namespace &&
		node.Annotations[clusterv1.ClusterNameAnnotation] == m.Spec.ClusterName &&
		node.Annotations[clusterv1.MachineAnnotation] == m.Name
}

// observedOf collects what an infrastructure object reports about the identity of its machine. What cannot be read of it is left out.
func observedOf(m *clusterv1.Machine, object external.Object, err error, own bool) observedInfrastructure {
	observed := observedInfrastructure{own: own, foreign: elsewhere(err), gone: apierrors.IsNotFound(err) || external.NotInstalled(err)}
	if object.Unstructured == nil {
		return observed
	}
	if !own {
		observed.foreign = observed.foreign || external.Foreign(object, m, kindMachine) != nil
		return observed
	}
	accessor := inframachine.At(object.Contract)
	observed.provisioned, _ = accessor.Provisioned(object.Unstructured)
	observed.providerID, _ = providerIDOf(accessor, object.Unstructured)
	return observed
}

// elsewhere reports whether an error means that something else controls an object.
func elsewhere(err error) bool {
	var foreign *external.OwnedElsewhereError
	return errors.As(err, &foreign)
}

// unproven reports whether no Node is known to be the Machine's, since its provider ID is not known to be its own.
func (s *scope) unproven() bool {
	observed := observedOf(s.Object, s.infrastructure.object, s.infrastructure.err, s.infrastructure.own)
	return evidenceOf(s.Object, observed) == claimed
}
