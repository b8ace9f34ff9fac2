package nodeaccess

import (
	"crypto/rand"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

// Token is a bootstrap token. Its id is public, its secret is not.
type Token struct {
	ID, Secret string
}

var tokenPattern = regexp.MustCompile(`^` + `[a-z0-9]{6}\.[a-z0-9]{16}` + `$`)

// NewToken returns a random token. The id is random too: one derived from the machine's name would be
// shared by machines whose names end alike.
func NewToken() Token {
	return Token{ID: random(6), Secret: random(16)}
}

// random returns n characters of a-z0-9, each as likely as the other. crypto/rand never fails.
func random(n int) string {
	const characters = "abcdefghijklmnopqrstuvwxyz0123456789"
	const fair = 256 - 256%len(characters)
	out := make([]byte, 0, n)
	one := make([]byte, 1)
	for len(out) < n {
		_, _ = rand.Read(one)
		if int(one[0]) < fair {
			out = append(out, characters[int(one[0])%len(characters)])
		}
	}
	return string(out)
}

// ParseToken reads "id.secret"; false when it is not a bootstrap token.
func ParseToken(s string) (Token, bool) {
	if !tokenPattern.MatchString(s) {
		return Token{}, false
	}
	id, secret, _ := strings.Cut(s, ".")
	return Token{ID: id, Secret: secret}, true
}

// Usable reports whether the token can be written down.
func (t Token) Usable() bool { return t.ID != "" && t.Secret != "" }

// Plain returns the token as the API server takes it. The name is not String, so that no formatting
// verb ever prints a token.
func (t Token) Plain() string { return t.ID + "." + t.Secret }

// String hides the secret.
func (t Token) String() string { return t.ID + ".(hidden)" }

// GoString hides the secret.
func (t Token) GoString() string { return t.String() }

// TokenSecretName is the name that a token of this id must have.
func TokenSecretName(id string) string { return bootstrapapi.BootstrapTokenSecretPrefix + id }

// TokenSecret is the object that makes the API server accept the token until it expires. The usage for
// signing, which kubeadm's discovery needs, is left out.
func (n Names) TokenSecret(token Token, config, purpose string, expiration time.Time, groups ...string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: n.meta(TokenNamespace, TokenSecretName(token.ID), config),
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(token.ID),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(token.Secret),
			bootstrapapi.BootstrapTokenExpirationKey:       []byte(expiration.UTC().Format(time.RFC3339)),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(strings.Join(groups, ",")),
			bootstrapapi.BootstrapTokenDescriptionKey:      []byte(purpose),
		},
	}
}

// Expiration returns when a token expires; the zero time when the Secret has none.
func Expiration(secret *corev1.Secret) time.Time {
	at, err := time.Parse(time.RFC3339, string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	if err != nil {
		return time.Time{}
	}
	return at
}

// RefreshAt returns when a token of this expiration is to be extended: with two thirds of its life
// left, so that an outage of this program may last that long before a machine cannot join.
func RefreshAt(expiration time.Time, ttl time.Duration) time.Time {
	return expiration.Add(-ttl * 2 / 3)
}

// UserOf returns the id of the bootstrap token that a user name stands for.
func UserOf(username string) (string, bool) {
	id, ok := strings.CutPrefix(username, bootstrapapi.BootstrapUserPrefix)
	return id, ok && bootstraputil.IsValidBootstrapTokenID(id)
}

func (n Names) meta(namespace, name, config string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{HashLabel: n.Hash},
		Annotations: map[string]string{ConfigAnnotation: config},
	}
}
