package nodeaccess

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// TokensPolicy is the name of the ValidatingAdmissionPolicy of config/target-cluster, which the API server
// quotes when that denies a request.
const TokensPolicy = "millwright-target-tokens"

// TokenOptions describe a token.
type TokenOptions struct {
	Token   Token
	Purpose string
	Groups  []string
	// TTL is the life that a new or extended token has.
	TTL time.Duration
	Now time.Time
}

// EnsureToken sees to it that the token can be used, and returns when it expires. A token that exists is
// extended when RefreshAt has come, also after it has expired: see TokenLives. A token of the same id that is not
// this one is a *ForeignError: the caller takes another id.
func (m *Machine) EnsureToken(ctx context.Context, o TokenOptions) (expiration time.Time, err error) {
	expiration = o.Now.Add(o.TTL).Truncate(time.Second)
	desired := m.Names.TokenSecret(o.Token, m.Config, o.Purpose, expiration, o.Groups...)
	found, err := m.token(ctx, o.Token.ID)
	if err == nil && found == nil {
		if err = m.Client.Create(ctx, desired.DeepCopy()); err == nil {
			return expiration, nil
		}
		if !persist.NameTaken(err) {
			return time.Time{}, errors.Wrapf(err, "creating bootstrap token %s in the target cluster", desired.Name)
		}
		found, err = m.token(ctx, o.Token.ID)
	}
	if err != nil {
		return time.Time{}, err
	}
	if found == nil || !m.Names.Owns(found) || string(found.Data[bootstrapapi.BootstrapTokenSecretKey]) != o.Token.Secret {
		return time.Time{}, &ForeignError{Kind: "bootstrap token", Name: desired.Name}
	}
	current := Expiration(found)
	whole := equality.Semantic.DeepEqual(without(found.Data), without(desired.Data))
	if whole && o.Now.Before(RefreshAt(current, o.TTL)) {
		return current, nil
	}
	before := found.DeepCopy()
	found.Data = desired.Data
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return expiration, errors.Wrapf(m.Client.Patch(ctx, found, patch), "extending bootstrap token %s in the target cluster", o.Token.ID)
}

// token returns the token with this id; nil when there is none. It is read by a patch that changes nothing: the right to get
// Secrets of kube-system would be one to read all of them, but what a patch meets, admission can refuse (config/target-cluster).
func (m *Machine) token(ctx context.Context, id string) (*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: TokenNamespace, Name: TokenSecretName(id)}}
	err := m.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte("{}")))
	switch {
	case persist.Gone(err):
		return nil, nil
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "'"+TokensPolicy+"'"):
		// The policy of config/target-cluster denies a patch that changes nothing if the Secret has another owner. What any other policy
		// denies is no evidence of whose it is.
		return nil, &ForeignError{Kind: "bootstrap token", Name: secret.Name}
	}
	return secret, errors.Wrapf(err, "reading bootstrap token %s in the target cluster", id)
}

// without returns the data of a token without its expiration, which is compared on its own.
func without(data map[string][]byte) map[string][]byte {
	out := make(map[string][]byte, len(data))
	for key, value := range data {
		if key != bootstrapapi.BootstrapTokenExpirationKey {
			out[key] = value
		}
	}
	return out
}

// TokenLives reports whether the token can be found, is the machine's and has not expired.
func (m *Machine) TokenLives(ctx context.Context, id string, now time.Time) (bool, error) {
	secret, err := m.token(ctx, id)
	return err == nil && secret != nil && m.Names.Owns(secret) && now.Before(Expiration(secret)), ignoreForeign(err)
}

// RemoveTokens deletes the tokens of these ids that are the machine's.
func (m *Machine) RemoveTokens(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		secret, err := m.token(ctx, id)
		if err != nil || secret == nil || !m.removable(secret) {
			if err = ignoreForeign(err); err != nil {
				return err
			}
			continue
		}
		err = m.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
		if persist.IgnoreGone(err) != nil {
			return errors.Wrapf(err, "deleting bootstrap token %s in the target cluster", id)
		}
	}
	return nil
}

func ignoreForeign(err error) error {
	var foreign *ForeignError
	if errors.As(err, &foreign) {
		return nil
	}
	return err
}
