package controller

import (
	"context"
	"errors"
	"fmt"

	pkgerrors "github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/target"
)

const (
	// valueKey and formatKey are the keys that infrastructure providers read.
	valueKey  = "value"
	formatKey = "format"
	// downloadTokenKey holds the token that is in the user data, so that a lost one can be made again.
	downloadTokenKey = "download-token"
)

// restore says the name of the Node, and takes over user data that the Machine already uses, after clusterctl move has
// dropped the status. Nothing is rendered again: a machine may have booted with it.
func (r *Reconciler) restore(_ context.Context, s *scope) error {
	s.config.Status.NodeName = s.node()
	if name := ptr.Deref(s.machine.Spec.Bootstrap.DataSecretName, ""); name != "" && s.config.Status.DataSecretName == "" {
		setPublished(s.config, name)
	}
	return nil
}

// ensureDataSecret makes the Secret with the user data. It is immutable, and after it was published it
// is never made again. Before, what the machine will download is made as well as can be without its provider ID, and waited for
// if that fails: a machine is launched once its user data is published, and could not join.
func (r *Reconciler) ensureDataSecret(ctx context.Context, s *scope) error {
	if s.joined() {
		return nil
	}
	name := s.config.Status.DataSecretName
	if name == "" {
		if _, err := r.payload(ctx, s); err != nil || s.wait != nil {
			return err
		}
	}
	secret, err := r.dataSecret(ctx, s, name)
	if err != nil {
		return err
	}
	switch {
	case secret != nil && name == "" && !metav1.IsControlledBy(secret, s.config):
		s.awaits(bootstrapv1.ForeignObjectReason, fmt.Sprintf(
			"Secret %s exists and is not of this CloudConfig; delete it, or the Machine", secret.Name))
		s.wake(s.now.Add(retryUnwatched))
	case secret != nil:
		s.dataSecret = secret
	case name != "":
		s.dataSecretLost = true
	default:
		return r.createDataSecret(ctx, s)
	}
	return nil
}

// dataSecret reads the Secret with the user data, nil when there is none. It has the CloudConfig's name
// unless the Machine says otherwise.
func (r *Reconciler) dataSecret(ctx context.Context, s *scope, name string) (*corev1.Secret, error) {
	if name == "" {
		name = s.config.Name
	}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: s.config.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, pkgerrors.Wrapf(err, "reading Secret %s", name)
}

// createDataSecret creates the Secret with a new token before the token itself exists: after a crash in
// between, the token is found here and never left over in the target cluster.
func (r *Reconciler) createDataSecret(ctx context.Context, s *scope) error {
	token := target.NewToken()
	files, err := r.files(ctx, s, true)
	if err != nil || s.wait != nil {
		return err
	}
	data, err := node.UserData(node.UserDataOptions{
		Server: s.endpoint.server, Authority: s.endpoint.authority, SecretNamespace: s.target.NodesNamespace(), SecretName: s.target.Names.Object(),
		DownloadToken: token.Plain(), Files: files, Users: s.config.Spec.Users,
	})
	var tooLarge *node.TooLargeError
	if errors.As(err, &tooLarge) {
		s.awaits(bootstrapv1.UserDataTooLargeReason,
			tooLarge.Error()+"; move files from stage Boot to stage Managed, which are downloaded")
		return nil
	}
	if err != nil {
		return err
	}
	secret := newDataSecret(s, data, token)
	if err := r.Client.Create(ctx, secret); err != nil {
		return pkgerrors.Wrapf(err, "creating Secret %s", secret.Name)
	}
	s.dataSecret = secret
	return nil
}

func newDataSecret(s *scope, data []byte, token target.Token) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.config.Namespace, Name: s.config.Name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.machine.Spec.ClusterName},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.config, bootstrapv1.GroupVersion.WithKind("CloudConfig"))},
		},
		Type:      clusterv1.ClusterSecretType,
		Immutable: ptr.To(true),
		Data: map[string][]byte{
			valueKey: data, formatKey: []byte(node.Format), downloadTokenKey: []byte(token.Plain()),
		},
	}
}

// publish tells the Machine which Secret to use. All that the user data needs exists by now.
func (r *Reconciler) publish(_ context.Context, s *scope) error {
	if s.config.Status.DataSecretName == "" && s.dataSecret != nil {
		setPublished(s.config, s.dataSecret.Name)
		r.event(s.config, bootstrapv1.AvailableReason, "CreateUserData", "Created the user data in Secret %s", s.dataSecret.Name)
	}
	s.published = s.config.Status.DataSecretName != "" && !s.dataSecretLost
	return nil
}

// setPublished writes what both versions of Cluster API's contract read.
func setPublished(config *bootstrapv1.CloudConfig, name string) {
	config.Status.DataSecretName = name
	config.Status.Ready = ptr.To(true)
	config.Status.Initialization.DataSecretCreated = ptr.To(true)
}

// downloadToken returns the token of the data Secret that was read.
func (s *scope) downloadToken() (target.Token, bool) {
	if s.dataSecret == nil {
		return target.Token{}, false
	}
	return target.ParseToken(string(s.dataSecret.Data[downloadTokenKey]))
}
