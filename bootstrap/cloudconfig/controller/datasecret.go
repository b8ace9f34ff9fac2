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
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/outcome"
)

const (
	// valueKey and formatKey are the keys that infrastructure providers read.
	valueKey  = "value"
	formatKey = "format"
	// downloadTokenKey holds the token that is in the user data, so that a lost one can be recreated.
	downloadTokenKey = "download-token"
)

// restore sets the name of the Node, and takes over user data that the Machine already uses, after clusterctl move has
// dropped the status. Nothing is rendered again: a machine may have booted with it.
func (r *Reconciler) restore(_ context.Context, s *scope) outcome.Outcome {
	s.Object.Status.NodeName = s.node()
	if name := ptr.Deref(s.machine.Spec.Bootstrap.DataSecretName, ""); name != "" && s.Object.Status.DataSecretName == "" {
		setPublished(s.Object, name)
	}
	return outcome.Continue()
}

// ensureDataSecret makes the Secret with the user data. It is immutable, and after it was published it
// is never recreated. Before, what the machine will download is made as well as can be without its provider ID, and waited for
// if that fails: a machine is launched once its user data is published, and could not join.
func (r *Reconciler) ensureDataSecret(ctx context.Context, s *scope) outcome.Outcome {
	if s.joined() {
		return outcome.Continue()
	}
	name := s.Object.Status.DataSecretName
	if name == "" {
		if _, made := r.payload(ctx, s); !made.Finished() {
			return made
		}
	}
	secret, err := r.dataSecret(ctx, s, name)
	if err != nil {
		return outcome.FromError(err)
	}
	switch {
	case secret != nil && name == "" && !metav1.IsControlledBy(secret, s.Object):
		return s.awaitsFor(retryUnwatched, bootstrapv1.ForeignObjectReason, fmt.Sprintf(
			"Secret %s exists and does not belong to this CloudConfig: delete it, or the Machine", secret.Name))
	case secret != nil:
		s.dataSecret = secret
	case name != "":
		s.dataSecretLost = true
	default:
		return r.createDataSecret(ctx, s)
	}
	return outcome.Continue()
}

// dataSecret reads the Secret with the user data, nil when there is none. It has the CloudConfig's name
// unless the Machine names another.
func (r *Reconciler) dataSecret(ctx context.Context, s *scope, name string) (*corev1.Secret, error) {
	if name == "" {
		name = s.Object.Name
	}
	secret := &corev1.Secret{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, pkgerrors.Wrapf(err, "reading Secret %s", name)
}

// createDataSecret creates the Secret with a new token before the token itself exists: after a crash in
// between, the token is found here and never left over in the target cluster.
func (r *Reconciler) createDataSecret(ctx context.Context, s *scope) outcome.Outcome {
	token := nodeaccess.NewToken()
	files, read := r.files(ctx, s, true)
	if !read.Finished() {
		return read
	}
	data, err := node.UserData(node.UserDataOptions{
		Server:          s.endpoint.server,
		Authority:       s.endpoint.authority,
		SecretNamespace: s.target.NodesNamespace(),
		SecretName:      s.target.Names.Object(),
		DownloadToken:   token.Plain(),
		Files:           files,
		Users:           s.Object.Spec.Users,
	})
	var tooLarge *node.TooLargeError
	if errors.As(err, &tooLarge) {
		return s.awaits(bootstrapv1.UserDataTooLargeReason, tooLarge.Error())
	}
	if err != nil {
		return outcome.FromError(err)
	}
	secret := newDataSecret(s, data, token)
	if err := r.Client.Create(ctx, secret); err != nil {
		return outcome.FromError(ofManagement(pkgerrors.Wrapf(err, "creating Secret %s", secret.Name)))
	}
	s.dataSecret = secret
	return outcome.Continue()
}

func newDataSecret(s *scope, data []byte, token nodeaccess.Token) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Object.Namespace, Name: s.Object.Name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.machine.Spec.ClusterName},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Object, bootstrapv1.GroupVersion.WithKind("CloudConfig"))},
		},
		Type:      clusterv1.ClusterSecretType,
		Immutable: ptr.To(true),
		Data: map[string][]byte{
			valueKey: data, formatKey: []byte(node.Format), downloadTokenKey: []byte(token.Plain()),
		},
	}
}

// publish sets for the Machine which Secret to use. All that the user data needs exists by now.
func (r *Reconciler) publish(_ context.Context, s *scope) outcome.Outcome {
	if s.Object.Status.DataSecretName == "" && s.dataSecret != nil {
		setPublished(s.Object, s.dataSecret.Name)
		s.firstPublished = true
	}
	s.published = s.Object.Status.DataSecretName != "" && !s.dataSecretLost
	return outcome.Continue()
}

// setPublished writes what both versions of Cluster API's contract read.
func setPublished(config *bootstrapv1.CloudConfig, name string) {
	config.Status.DataSecretName = name
	config.Status.Ready = ptr.To(true)
	config.Status.Initialization.DataSecretCreated = ptr.To(true)
}

// downloadToken returns the token of the data Secret that was read.
func (s *scope) downloadToken() (nodeaccess.Token, bool) {
	if s.dataSecret == nil {
		return nodeaccess.Token{}, false
	}
	return nodeaccess.ParseToken(string(s.dataSecret.Data[downloadTokenKey]))
}
