package nodeaccess

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// Machine is one machine in its target cluster. All reads are live and by name.
type Machine struct {
	// Client is a client of the target cluster without a cache.
	Client client.Client
	// Names of the machine.
	Names Names
	// Config is the CloudConfig as "namespace/name".
	Config string
	// Namespace of the node's Secret, its Role and RoleBinding; DefaultNamespace when empty.
	Namespace string
	// DownloadToken is the id of the token in the machine's user data; empty while it is not known. No two machines have the same, nor
	// have two that have one name one after the other, and clusterctl move does not change it.
	DownloadToken string
	// OwnOnly restricts removals to what was created for Config.
	OwnOnly bool
}

// NodesNamespace is the namespace of the node's Secret.
func (m *Machine) NodesNamespace() string { return cmp.Or(m.Namespace, DefaultNamespace) }

// ForeignError means that an object of a needed name belongs to another owner.
type ForeignError struct {
	// Kind and Name of the object; it is in Namespace when its kind has namespaces.
	Kind, Name string
}

// Error implements error.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %s in the target cluster was not created for this machine; delete or rename it", e.Kind, e.Name)
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
		if !persist.NameTaken(err) {
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

// EnsureAccess sees to it that the machine, or its Node once node is given, may read its own Secret. A Role that is created now lets a
// machine write reports as well if there is a Lease for them; one that is there keeps that right until the Node is given. existed
// means that Role or RoleBinding was there.
func (m *Machine) EnsureAccess(ctx context.Context, node string, reports bool) (existed bool, err error) {
	if existed, err = m.ensureRole(ctx, node != "", reports); err != nil {
		return existed, err
	}
	binding, found := m.Names.RoleBinding(m.NodesNamespace(), m.Config, node), &rbacv1.RoleBinding{}
	created, err := m.ensure(ctx, "RoleBinding", binding, found)
	if err != nil || created {
		return existed, err
	}
	if equality.Semantic.DeepEqual(found.Subjects, binding.Subjects) {
		return true, nil
	}
	found.Subjects = binding.Subjects
	return true, errors.Wrapf(m.Client.Update(ctx, found), "updating RoleBinding %s in the target cluster", binding.Name)
}

func (m *Machine) ensureRole(ctx context.Context, joined, reports bool) (existed bool, err error) {
	silent, reporting := m.Names.Role(m.NodesNamespace(), m.Config, false), m.Names.Role(m.NodesNamespace(), m.Config, true)
	role, found := silent.DeepCopy(), &rbacv1.Role{}
	if reports && !joined {
		role = reporting.DeepCopy()
	}
	created, err := m.ensure(ctx, "Role", role, found)
	switch {
	case err != nil || created:
		return false, err
	case equality.Semantic.DeepEqual(found.Rules, role.Rules):
		return true, nil
	case !joined && equality.Semantic.DeepEqual(found.Rules, reporting.Rules):
		return true, nil
	}
	found.Rules = role.Rules
	return true, errors.Wrapf(m.Client.Update(ctx, found), "updating Role %s in the target cluster", role.Name)
}

// NodeSecret returns the node's Secret, nil when there is none.
func (m *Machine) NodeSecret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.NodesNamespace(), Name: m.Names.Object()}, secret)
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

// WriteNodeSecret makes the node's Secret hold the data, and record the token with this id as one that the machine was given; no
// id records none. current is what NodeSecret has returned; an equal one is not written. Annotations that others have set on it
// stay. written reports whether it was.
func (m *Machine) WriteNodeSecret(
	ctx context.Context,
	current *corev1.Secret,
	data map[string][]byte,
	tokenID string,
) (written bool, err error) {
	if current == nil {
		secret := &corev1.Secret{ObjectMeta: m.Names.meta(m.NodesNamespace(), m.Names.Object(), m.Config), Data: data}
		m.record(secret, tokenID)
		return true, errors.Wrapf(m.Client.Create(ctx, secret), "creating Secret %s in the target cluster", secret.Name)
	}
	secret := current.DeepCopy()
	secret.Data = data
	m.record(secret, tokenID)
	if equality.Semantic.DeepEqual(current.Data, data) &&
		current.Annotations[JoinTokensAnnotation] == secret.Annotations[JoinTokensAnnotation] {
		return false, nil
	}
	return true, errors.Wrapf(m.Client.Update(ctx, secret), "updating Secret %s in the target cluster", secret.Name)
}

// removable reports whether the object is the machine's and, if OwnOnly, was created for this CloudConfig.
func (m *Machine) removable(object client.Object) bool {
	return m.Names.Owns(object) && (!m.OwnOnly || object.GetAnnotations()[ConfigAnnotation] == m.Config)
}

// remove deletes an object if it is there and the machine's.
func (m *Machine) remove(ctx context.Context, kind string, object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	if err := m.Client.Get(ctx, key, object); err != nil {
		return errors.Wrapf(client.IgnoreNotFound(err), "reading %s %s in the target cluster", kind, key.Name)
	}
	if !m.removable(object) {
		return nil
	}
	uid := object.GetUID()
	err := m.Client.Delete(ctx, object, client.Preconditions{UID: &uid})
	return errors.Wrapf(persist.IgnoreGone(err), "deleting %s %s in the target cluster", kind, key.Name)
}

// RemoveAll deletes everything. The node's Secret, which names the join token, goes last.
func (m *Machine) RemoveAll(ctx context.Context, ids ...string) error {
	if err := m.RemoveTokens(ctx, ids...); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: m.NodesNamespace(), Name: m.Names.Object()}
	if err := m.RemoveReport(ctx); err != nil {
		return err
	}
	if err := m.remove(ctx, "RoleBinding", &rbacv1.RoleBinding{ObjectMeta: meta}); err != nil {
		return err
	}
	if err := m.remove(ctx, "Role", &rbacv1.Role{ObjectMeta: meta}); err != nil {
		return err
	}
	return m.remove(ctx, "Secret", &corev1.Secret{ObjectMeta: meta})
}
