package nodeaccess

import (
	"context"
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// JoinTokensAnnotation on a node's Secret names the ids of the join tokens that the machine was given, the last one last. A kubelet
// continues with the certificate request that it has created, also when the token that it was created with is gone.
const JoinTokensAnnotation = "bootstrap.millwright.dev/join-tokens"

// DownloadTokenAnnotation on a node's Secret names the id of the download token of the machine that the Secret was written for. A
// Secret of this name that was written for another machine is a leftover of an earlier Machine of the same name.
const DownloadTokenAnnotation = "bootstrap.millwright.dev/download-token"

// recordedTokens is how many ids are kept. Each but the last is of a token that was lost before the machine has joined.
const recordedTokens = 32

// JoinTokens returns the ids of the join tokens that the machine was given.
func JoinTokens(secret *corev1.Secret) []string {
	ids := strings.Split(secret.Annotations[JoinTokensAnnotation], ",")
	return slices.DeleteFunc(ids, func(id string) bool { return !bootstraputil.IsValidBootstrapTokenID(id) })
}

// record writes whose the Secret is, and adds the id of a token to those that the machine was given.
func (m *Machine) record(secret *corev1.Secret, id string) {
	if m.DownloadToken != "" {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, DownloadTokenAnnotation, m.DownloadToken)
	}
	ids := JoinTokens(secret)
	if id == "" || slices.Contains(ids, id) {
		return
	}
	ids = append(ids, id)
	ids = ids[max(0, len(ids)-recordedTokens):]
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, JoinTokensAnnotation, strings.Join(ids, ","))
}

// WrittenFor returns the id of the download token of the machine that the Secret was written for; "" if an earlier version wrote it.
func WrittenFor(secret *corev1.Secret) string { return secret.Annotations[DownloadTokenAnnotation] }

// RemoveLeftover deletes the node's Secret of an earlier Machine of the same name, and before it the tokens that the Secret names:
// who has one of those could read what the machine of today is given, or ask for a certificate in its name.
func (m *Machine) RemoveLeftover(ctx context.Context, secret *corev1.Secret) error {
	if err := m.RemoveTokens(ctx, append(JoinTokens(secret), WrittenFor(secret))...); err != nil {
		return err
	}
	uid := secret.UID
	err := m.Client.Delete(ctx, secret, client.Preconditions{UID: &uid})
	return errors.Wrapf(persist.IgnoreGone(err), "deleting Secret %s of an earlier Machine in the target cluster", secret.Name)
}
