package nodeaccess

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DefaultNamespace holds the Secrets of nodes, and the Roles and RoleBindings for those who may read them, unless a flag names
	// another namespace. Nothing else is in it: who may write Secrets and RoleBindings in kube-system is cluster-admin.
	DefaultNamespace = "millwright-nodes"
	// TokenNamespace holds the bootstrap tokens, which work nowhere else.
	TokenNamespace = "kube-system"
	// HashLabel marks what was created for a machine. An object of a needed name without it, or with
	// another value, belongs to another owner and is neither changed nor deleted.
	HashLabel = "bootstrap.millwright.dev/machine-hash"
	// ConfigAnnotation names the CloudConfig, "namespace/name", for people.
	ConfigAnnotation = "bootstrap.millwright.dev/cloudconfig"
	// RequestGroup is a group of every join token. config/target-cluster binds it, once, to the right to ask for certificates.
	RequestGroup = groupPrefix + "request"
	// SharedJoinGroup is a group of every join token whose CloudConfig leaves approval to
	// kube-controller-manager, so that its owner has one group to bind the approving ClusterRoles to.
	SharedJoinGroup = groupPrefix + "join"

	prefix      = "cloud-config-"
	groupPrefix = "system:bootstrappers:cloud-config:"
	joinSuffix  = ":join"
	hashLength  = 20
)

// Names are the names of one machine in its target cluster.
type Names struct {
	// Hash stands for the machine: 80 bits of a SHA-256 in hexadecimal digits. The groups of bootstrap
	// tokens allow no dots, and machine names may have them.
	Hash string
}

// NamesFor returns the names for a Machine. They depend on nothing that clusterctl move changes.
func NamesFor(namespace, cluster, machine string) Names {
	sum := sha256.Sum256([]byte(namespace + "/" + cluster + "/" + machine))
	return Names{Hash: hex.EncodeToString(sum[:])[:hashLength]}
}

// NamesOf returns the names that belong to a recorded object name, false when it is not one.
func NamesOf(object string) (Names, bool) {
	hash, ok := strings.CutPrefix(object, prefix)
	return Names{Hash: hash}, ok && isHash(hash)
}

// NamesOfJoinGroups returns the names of the machine whose join token has these groups.
func NamesOfJoinGroups(groups []string) (Names, bool) {
	for _, group := range groups {
		rest, ok := strings.CutPrefix(group, groupPrefix)
		if !ok {
			continue
		}
		if hash, ok := strings.CutSuffix(rest, joinSuffix); ok && isHash(hash) {
			return Names{Hash: hash}, true
		}
	}
	return Names{}, false
}

func isHash(s string) bool {
	return len(s) == hashLength && strings.Trim(s, "0123456789abcdef") == ""
}

// Object is the name of the node's Secret, Role and RoleBinding.
func (n Names) Object() string { return prefix + n.Hash }

// DownloadGroup is the group of the token with which the machine reads its Secret.
func (n Names) DownloadGroup() string { return groupPrefix + n.Hash }

// JoinGroup is the group of the token with which the kubelet asks for its certificate.
func (n Names) JoinGroup() string { return groupPrefix + n.Hash + joinSuffix }

// Owns reports whether the object was created for this machine.
func (n Names) Owns(object client.Object) bool {
	return n.Hash != "" && object.GetLabels()[HashLabel] == n.Hash
}
