package target

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// JoinTokensAnnotation on a node's Secret names the ids of the join tokens that the machine was given, the last one last. A kubelet
// goes on with the certificate request that it has made, also when the token that it was made with is no more.
const JoinTokensAnnotation = "bootstrap.millwright.dev/join-tokens"

// recordedTokens is how many ids are kept. Each but the last is of a token that was lost before the machine has joined.
const recordedTokens = 32

// JoinTokens returns the ids of the join tokens that the machine was given.
func JoinTokens(secret *corev1.Secret) []string {
	ids := strings.Split(secret.Annotations[JoinTokensAnnotation], ",")
	return slices.DeleteFunc(ids, func(id string) bool { return !bootstraputil.IsValidBootstrapTokenID(id) })
}

// record adds the id of a token to those that the machine was given.
func record(secret *corev1.Secret, id string) {
	ids := JoinTokens(secret)
	if id == "" || slices.Contains(ids, id) {
		return
	}
	ids = append(ids, id)
	ids = ids[max(0, len(ids)-recordedTokens):]
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, JoinTokensAnnotation, strings.Join(ids, ","))
}
