package machine

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
)

// evidence is how well it is established that a provider ID is a Machine's own. More evidence is greater.
type evidence int

const (
	// claimed: it is in the spec, which anyone who may write Machines can write. It takes no Node from another Machine.
	claimed evidence = iota
	// unconfirmed: the Machine is being deleted, and its infrastructure was never provisioned. The infrastructure object has the
	// provider ID, or no longer exists.
	unconfirmed
	// recorded: the infrastructure object of the Machine has reported a provisioned machine, and cannot be asked any more.
	recorded
	// reported: the infrastructure object of the Machine reports it for a provisioned machine.
	reported
)

// observedInfrastructure is what evidence is derived from.
type observedInfrastructure struct {
	// own is true for an object that the Machine controls, foreign for one that something else does, gone when there is none.
	// All are false when it could not be read.
	own, foreign, gone bool
	provisioned        bool
	providerID         string
}

// evidenceOf derives how well it is established that the provider ID in the spec of a Machine is its own.
func evidenceOf(m *clusterv1.Machine, infra observedInfrastructure) evidence {
	before := ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false)
	reports := infra.own && infra.providerID == m.Spec.ProviderID
	switch {
	case m.Spec.ProviderID == "", infra.foreign:
		return claimed
	case reports && (infra.provisioned || before):
		return reported
	case infra.own && infra.provisioned && infra.providerID != "":
		// It belongs to another machine: a user has written the spec, and it was not corrected yet, for example while it is paused.
		return claimed
	case before:
		return recorded
	case !m.DeletionTimestamp.IsZero() && (reports || infra.gone):
		return unconfirmed
	}
	return claimed
}

// claimant is a Machine that has a provider ID in its spec.
type claimant struct {
	machine  *clusterv1.Machine
	evidence evidence
	// linked is true when the Machine is linked with a Node that has this provider ID, or when no Node has it and the Machine
	// is linked with one.
	linked bool
}

// holderOf returns the Machine whose the provider ID is: the one with the most evidence; of several with equal evidence one
// that is linked with a Node, then the oldest. It is nil when there is no evidence. Equals are the others with as much.
func holderOf(claimants []claimant) (holder *clusterv1.Machine, equals []*clusterv1.Machine) {
	sorted := slices.SortedFunc(slices.Values(claimants), func(a, b claimant) int {
		return cmp.Or(
			cmp.Compare(b.evidence, a.evidence),
			cmp.Compare(rank(a.linked), rank(b.linked)),
			a.machine.CreationTimestamp.Compare(b.machine.CreationTimestamp.Time),
			cmp.Compare(a.machine.UID, b.machine.UID),
		)
	})
	if len(sorted) == 0 || sorted[0].evidence == claimed {
		return nil, nil
	}
	for _, other := range sorted[1:] {
		if other.evidence == sorted[0].evidence {
			equals = append(equals, other.machine)
		}
	}
	return sorted[0].machine, equals
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// linkedWith reports whether a Machine is linked with one of the Nodes that have its provider ID. A link with another Node says
// nothing about that ID.
func linkedWith(m *clusterv1.Machine, nodes []*corev1.Node) bool {
	return m.Status.NodeRef.IsDefined() && (len(nodes) == 0 ||
		slices.ContainsFunc(nodes, func(node *corev1.Node) bool { return node.Name == m.Status.NodeRef.Name }))
}

// nodeEvidence is what is known about the Node of a Machine from other sources than the Nodes that claim its provider ID. The
// certificate of a kubelet binds the name of its Node, so a name is evidence where the rest of a Node is not.
type nodeEvidence struct {
	// expected is the name that the bootstrap provider has given the Node; "" when it has given none.
	expected string
	// hosts are the names among the addresses that the infrastructure reports, in lower case.
	hosts []string
	// linked is the Node that the Machine is linked with; "" for none.
	linked string
	// machine is the name of the Machine.
	machine string
	// unconfirmed is true for evidence of that kind: only a name counts then, of a Node that is no older than the Machine.
	unconfirmed bool
	created     metav1.Time
	// elsewhere names the other Machine that a Node of that name belongs to by all appearances; "" when there is none.
	elsewhere func(node string) string
}

// nodeClaim is a Node with the provider ID of a Machine.
type nodeClaim struct {
	name    string
	created metav1.Time
	// mutual is true for a Node whose annotations name the Machine as its own.
	mutual bool
}

// chooseNode returns the Node of the Machine among those that claim its provider ID; "" for none. The first line of the
// table in README.md that applies counts. Several is true when only a person can distinguish them.
func (e *nodeEvidence) chooseNode(claims []nodeClaim) (name string, several bool) {
	names := make([]string, 0, len(claims))
	for _, claim := range claims {
		if !e.unconfirmed || claim.mutual || !claim.created.Before(&e.created) {
			names = append(names, claim.name)
		}
	}
	for _, name := range e.namesInOrder() {
		if slices.Contains(names, name) {
			return name, false
		}
	}
	if e.expected != "" || e.linked != "" {
		return "", false
	}
	if e.unconfirmed {
		names = mutual(claims)
	}
	free := slices.DeleteFunc(names, func(name string) bool { return e.elsewhere(name) != "" })
	if len(free) == 1 {
		return free[0], false
	}
	return "", len(free) > 1
}

// mutual are the names of the Nodes that name the Machine, as the core has written on them: a Machine that was created again from an export
// has no status that links it with its Node.
func mutual(claims []nodeClaim) []string {
	var names []string
	for _, claim := range claims {
		if claim.mutual {
			names = append(names, claim.name)
		}
	}
	return names
}

// namesInOrder are the names that a Node of the Machine may have, the best established first.
func (e *nodeEvidence) namesInOrder() []string {
	if e.expected != "" {
		return []string{e.expected}
	}
	var names []string
	if slices.Contains(e.hosts, e.linked) {
		names = append(names, e.linked)
	}
	names = append(names, e.hosts...)
	if e.linked != "" {
		names = append(names, e.linked)
	}
	return append(names, e.machine)
}

// refusal describes why Nodes that claim the provider ID are not accepted; "" when there are none. Three of them are named: someone
// who registers many must not fill the status.
func (e *nodeEvidence) refusal(providerID, chosen string, claims []nodeClaim) string {
	var refused []string
	for _, claim := range claims {
		if claim.name != chosen {
			refused = append(refused, claim.name)
		}
	}
	if len(refused) == 0 {
		return ""
	}
	slices.Sort(refused)
	cause := "its infrastructure was never provisioned"
	switch elsewhere := e.elsewhere(refused[0]); {
	case chosen != "":
		cause = "this Machine is linked with Node " + chosen
	case e.expected != "":
		cause = "the Node of this Machine is named " + e.expected
	case e.linked != "":
		cause = "this Machine is linked with Node " + e.linked
	case elsewhere != "":
		cause = "that is the Node of Machine " + elsewhere
	}
	verb, noun := " claims", "Node "
	if len(refused) > 1 {
		verb, noun = " claim", "Nodes "
	}
	return fmt.Sprintf("%s%s the provider ID %s and is ignored: %s. Find out who registered it and delete it",
		noun+few(refused), verb, providerID, cause)
}

// few lists at most three names.
func few(names []string) string { return conditions.ListNames(names, 3) }

// OtherMachineError means that the provider ID of a Machine is that of another one.
type OtherMachineError struct {
	// ProviderID is the provider ID in question.
	ProviderID string
	// Machine is the one whose it is.
	Machine types.NamespacedName
	// Equal is true when the infrastructure of both reports it.
	Equal bool
}

// Error names the other Machine and the remedy.
func (e *OtherMachineError) Error() string {
	if e.Equal {
		return fmt.Sprintf(
			"The infrastructure of Machine %s reports the provider ID %s too, and was first: correct one of the two, or delete this Machine",
			e.Machine,
			e.ProviderID,
		)
	}
	return fmt.Sprintf(
		"The provider ID %s is that of Machine %s, whose infrastructure reports it: refer to infrastructure of its own, or delete this Machine",
		e.ProviderID,
		e.Machine,
	)
}

// contested describes that other Machines have as good a claim to the provider ID as its holder.
func contested(providerID string, equals []*clusterv1.Machine) string {
	if len(equals) == 0 {
		return ""
	}
	names := make([]string, 0, len(equals))
	for _, other := range equals {
		names = append(names, client.ObjectKeyFromObject(other).String())
	}
	slices.Sort(names)
	return fmt.Sprintf(
		"The infrastructure of Machine %s reports the provider ID %s too; this Machine keeps the Node: correct the infrastructure, or delete the other Machine",
		few(names),
		providerID,
	)
}
