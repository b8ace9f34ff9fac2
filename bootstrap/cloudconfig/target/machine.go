package target

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Machine is one machine in its target cluster. All reads are live and by name.
type Machine struct {
	// Client is a client of the target cluster without a cache.
	Client client.Client
	// Names of the machine.
	Names Names
	// Config is the CloudConfig as "namespace/name".
	Config string
}

// ForeignError says that an object of a needed name belongs to somebody else.
type ForeignError struct {
	// Kind and Name of the object; it is in Namespace when its kind has namespaces.
	Kind, Name string
}

// Error implements error.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %s in the target cluster was not made for this machine; delete or rename it", e.Kind, e.Name)
}

// ensure creates the object, or returns the one that exists in found. It fails with a *ForeignError
// when that is not the machine's.
func (m *Machine) ensure(ctx context.Context, kind string, desired, found client.Object) (created bool, err error) {
	key := client.ObjectKeyFromObject(desired)
	err = m.Client.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		if err = m.Client.Create(ctx, desired); err == nil {
			return true, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return false, errors.Wrapf(err, "creating %s %s in the target cluster", kind, key.Name)
		}
		err = m.Client.Get(ctx, key, found)
	}
	if err != nil {
		return false, errors.Wrapf(err, "reading %s %s in the target cluster", kind, key.Name)
	}
	if !m.Names.Owns(found) {
		return false, &ForeignError{Kind: kind, Name: key.Name}
	}
	return false, nil
}

// EnsureAccess sees to it that the machine, or its Node once node is given, may read its own Secret.
func (m *Machine) EnsureAccess(ctx context.Context, node string) error {
	role, foundRole := m.Names.Role(m.Config), &rbacv1.Role{}
	created, err := m.ensure(ctx, "Role", role, foundRole)
	if err != nil {
		return err
	}
	if !created && !equality.Semantic.DeepEqual(foundRole.Rules, role.Rules) {
		foundRole.Rules = role.Rules
		if err := m.Client.Update(ctx, foundRole); err != nil {
			return errors.Wrapf(err, "updating Role %s in the target cluster", role.Name)
		}
	}
	binding, found := m.Names.RoleBinding(m.Config, node), &rbacv1.RoleBinding{}
	if created, err = m.ensure(ctx, "RoleBinding", binding, found); err != nil || created {
		return err
	}
	if equality.Semantic.DeepEqual(found.Subjects, binding.Subjects) {
		return nil
	}
	found.Subjects = binding.Subjects
	return errors.Wrapf(m.Client.Update(ctx, found), "updating RoleBinding %s in the target cluster", binding.Name)
}

// EnsureJoinAccess sees to it that the holder of the join token may ask for a certificate.
func (m *Machine) EnsureJoinAccess(ctx context.Context) error {
	_, err := m.ensure(ctx, "ClusterRoleBinding", m.Names.ClusterRoleBinding(m.Config), &rbacv1.ClusterRoleBinding{})
	return err
}

// TokenOptions say what a token is.
type TokenOptions struct {
	Token   Token
	Purpose string
	Groups  []string
	// TTL is the life that a new or extended token has.
	TTL time.Duration
	Now time.Time
}

// EnsureToken sees to it that the token can be used, and returns when it expires. A token that exists is
// extended when RefreshAt has come, also after it has expired. A token of the same id that is not
// this one is a *ForeignError: the caller takes another id.
func (m *Machine) EnsureToken(ctx context.Context, o TokenOptions) (expiration time.Time, err error) {
	expiration = o.Now.Add(o.TTL).Truncate(time.Second)
	desired, found := m.Names.TokenSecret(o.Token, m.Config, o.Purpose, expiration, o.Groups...), &corev1.Secret{}
	created, err := m.ensure(ctx, "bootstrap token", desired, found)
	if err != nil || created {
		return expiration, err
	}
	if string(found.Data[bootstrapapi.BootstrapTokenSecretKey]) != o.Token.Secret {
		return time.Time{}, &ForeignError{Kind: "bootstrap token", Name: desired.Name}
	}
	current := Expiration(found)
	whole := equality.Semantic.DeepEqual(without(found.Data), without(desired.Data))
	if whole && o.Now.Before(RefreshAt(current, o.TTL)) {
		return current, nil
	}
	found.Data = desired.Data
	return expiration, errors.Wrapf(m.Client.Update(ctx, found), "extending bootstrap token %s in the target cluster", o.Token.ID)
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

// TokenExists says whether the token can be found and is the machine's.
func (m *Machine) TokenExists(ctx context.Context, id string) (bool, error) {
	secret := &corev1.Secret{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: TokenSecretName(id)}, secret)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return m.Names.Owns(secret), errors.Wrapf(err, "reading bootstrap token %s in the target cluster", id)
}

// NodeSecret returns the node's Secret, nil when there is none.
func (m *Machine) NodeSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: m.Names.Object()}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "reading Secret %s in the target cluster", m.Names.Object())
	}
	if !m.Names.Owns(secret) {
		return nil, &ForeignError{Kind: "Secret", Name: secret.Name}
	}
	return secret, nil
}

// WriteNodeSecret makes the node's Secret hold the data. current is what NodeSecret has returned; an
// equal one is not written. Annotations that others have set on it stay. written says whether it was.
func (m *Machine) WriteNodeSecret(ctx context.Context, current *corev1.Secret, data map[string][]byte) (written bool, err error) {
	if current == nil {
		secret := &corev1.Secret{ObjectMeta: m.Names.meta(m.Names.Object(), m.Config), Data: data}
		return true, errors.Wrapf(m.Client.Create(ctx, secret), "creating Secret %s in the target cluster", secret.Name)
	}
	if equality.Semantic.DeepEqual(current.Data, data) {
		return false, nil
	}
	secret := current.DeepCopy()
	secret.Data = data
	return true, errors.Wrapf(m.Client.Update(ctx, secret), "updating Secret %s in the target cluster", secret.Name)
}

// remove deletes an object if it is there and the machine's.
func (m *Machine) remove(ctx context.Context, kind string, object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	if err := m.Client.Get(ctx, key, object); err != nil {
		return errors.Wrapf(client.IgnoreNotFound(err), "reading %s %s in the target cluster", kind, key.Name)
	}
	if !m.Names.Owns(object) {
		return nil
	}
	uid := object.GetUID()
	err := m.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	return errors.Wrapf(client.IgnoreNotFound(err), "deleting %s %s in the target cluster", kind, key.Name)
}

// RemoveTokens deletes the tokens of these ids and the permission to ask for certificates.
func (m *Machine) RemoveTokens(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: TokenSecretName(id)}}
		if err := m.remove(ctx, "bootstrap token", token); err != nil {
			return err
		}
	}
	return m.remove(ctx, "ClusterRoleBinding", &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: m.Names.Object()}})
}

// RemoveAll deletes everything. The node's Secret, which says which join token there is, goes last.
func (m *Machine) RemoveAll(ctx context.Context, ids ...string) error {
	if err := m.RemoveTokens(ctx, ids...); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: m.Names.Object()}
	if err := m.remove(ctx, "RoleBinding", &rbacv1.RoleBinding{ObjectMeta: meta}); err != nil {
		return err
	}
	if err := m.remove(ctx, "Role", &rbacv1.Role{ObjectMeta: meta}); err != nil {
		return err
	}
	return m.remove(ctx, "Secret", &corev1.Secret{ObjectMeta: meta})
}
