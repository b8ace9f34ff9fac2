package cluster

import (
	"context"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/cluster/kubeconfig"
	"millwright.dev/core/external"
)

// authoritySuffix is how the name of the Secret with the certificate authority of a target cluster ends.
const authoritySuffix = "-ca"

// lookForAuthority is how often it is looked for a Secret that may lack the label by which it is watched.
const lookForAuthority = 30 * time.Second

// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;get;list;patch;watch

// kubeconfigs are the Secrets of which it is known when they are to be read again, so that not every reconcile reads them. What
// happens to a Secret makes it forgotten.
type kubeconfigs struct {
	mu   sync.Mutex
	next map[types.NamespacedName]time.Time
}

// forget causes the Secrets of a Cluster to be read again.
func (k *kubeconfigs) forget(cluster types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.next, cluster)
}

// remember has them read when it is time; never, if that is zero.
func (k *kubeconfigs) remember(cluster types.NamespacedName, next time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next == nil {
		k.next = map[types.NamespacedName]time.Time{}
	}
	k.next[cluster] = next
}

func (k *kubeconfigs) at(cluster types.NamespacedName) (next time.Time, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next, known = k.next[cluster]
	return next, known
}

// ofSecret maps the Secrets with kubeconfig and certificate authority to their Cluster.
func (r *Reconciler) ofSecret(_ context.Context, secret client.Object) []reconcile.Request {
	for _, suffix := range []string{shared.SecretName(""), authoritySuffix} {
		if cluster, ok := strings.CutSuffix(secret.GetName(), suffix); ok && cluster != "" {
			key := types.NamespacedName{Namespace: secret.GetNamespace(), Name: cluster}
			r.kubeconfigs.forget(key)
			return []reconcile.Request{{NamespacedName: key}}
		}
	}
	return nil
}

// reconcileKubeconfig makes the kubeconfig of a Cluster without a control plane provider from its certificate authority, where there is
// one, and renews the client certificate in it. A kubeconfig that the core did not create is left alone.
func (r *Reconciler) reconcileKubeconfig(ctx context.Context, s *scope) outcome.Outcome {
	// What this reconcile has found as endpoint may be refused.
	if s.controlPlane.ref.IsDefined() || !s.Original.Spec.ControlPlaneEndpoint.IsValid() {
		return outcome.Continue()
	}
	if next, known := r.kubeconfigs.at(s.Key()); known && s.connected && (next.IsZero() || s.Now.Before(next)) {
		return later(next, s.Now)
	}
	secret := &corev1.Secret{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: shared.SecretName(s.Object.Name)}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return r.makeKubeconfig(ctx, s)
	case err != nil:
		return outcome.FromError(errors.Wrap(err, "reading the kubeconfig"))
	case !ownedBy(secret, s.Object):
		r.kubeconfigs.remember(s.Key(), time.Time{})
		return outcome.Continue()
	}
	return r.renewKubeconfig(ctx, s, secret)
}

// ownedBy reports whether a Secret is the Cluster's own, and not that of a provider.
func ownedBy(secret *corev1.Secret, cluster *clusterv1.Cluster) bool {
	if controller := metav1.GetControllerOf(secret); controller != nil && controller.UID != cluster.UID {
		return false
	}
	for _, owner := range secret.OwnerReferences {
		if owner.UID == cluster.UID {
			return true
		}
	}
	return false
}

// later asks for another reconcile at that time; for none if it is zero.
func later(next, now time.Time) outcome.Outcome {
	if next.IsZero() {
		return outcome.Continue()
	}
	return outcome.ContinueAfter(next.Sub(now))
}

// authority reads the certificate authority live, since caches have no content of Secrets; nil if there is none.
func (r *Reconciler) authority(ctx context.Context, s *scope) (*kubeconfig.Authority, error) {
	secret := &corev1.Secret{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: s.Object.Name + authoritySuffix}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "reading the certificate authority")
	}
	if whose := shared.Foreign(secret, s.Object.Name); whose != "" {
		return nil, &unusableError{errors.New("it is " + whose)}
	}
	authority, err := kubeconfig.ParseAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, &unusableError{err}
	}
	return authority, nil
}

// unusableError means that nothing can be done before a user has changed a Secret, which is an event.
type unusableError struct{ error }

// Unwrap returns the cause.
func (e *unusableError) Unwrap() error { return e.error }

// makeKubeconfig makes the Secret.
func (r *Reconciler) makeKubeconfig(ctx context.Context, s *scope) outcome.Outcome {
	r.kubeconfigs.forget(s.Key())
	authority, err := r.authority(ctx, s)
	if authority == nil && err == nil {
		return outcome.ContinueAfter(lookForAuthority)
	}
	var content []byte
	if err == nil {
		endpoint := s.Original.Spec.ControlPlaneEndpoint
		server := "https://" + net.JoinHostPort(endpoint.Host, strconv.Itoa(int(endpoint.Port)))
		if content, err = authority.Make(s.Object.Name, server, s.Now); err != nil {
			err = &unusableError{err}
		}
	}
	if err == nil {
		err = r.createKubeconfig(ctx, s, content)
	}
	doing := "Secret " + shared.SecretName(s.Object.Name) + " cannot be made from Secret " + s.Object.Name + authoritySuffix
	return s.kubeconfigFailed(doing, err)
}

// createKubeconfig writes the Secret. Its owner is read before: what is owned by a Cluster of the past is deleted.
func (r *Reconciler) createKubeconfig(ctx context.Context, s *scope, content []byte) error {
	if err := external.MustLive(ctx, r.APIReader, s.Object, kindCluster); err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Object.Namespace, Name: shared.SecretName(s.Object.Name),
			Labels: map[string]string{clusterv1.ClusterNameLabel: s.Object.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: s.Object.Name, UID: s.Object.UID,
			}},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{shared.SecretKey: content},
	}
	err := r.Client.Create(ctx, secret)
	if persist.NameTaken(err) {
		return nil // Another client was faster: the Secret is theirs.
	}
	return err
}

// renewKubeconfig renews the client certificate when half of its time is over.
func (r *Reconciler) renewKubeconfig(ctx context.Context, s *scope, secret *corev1.Secret) outcome.Outcome {
	authority, err := r.authority(ctx, s)
	if authority == nil && err == nil {
		r.kubeconfigs.remember(s.Key(), time.Time{})
		return outcome.Continue()
	}
	var renewed []byte
	var next time.Time
	if err == nil {
		renewed, next, err = authority.Renew(secret.Data[shared.SecretKey], s.Now)
		if err != nil {
			err = &unusableError{err}
		}
	}
	if err == nil && renewed != nil {
		before := secret.DeepCopy()
		secret.Data = maps.Clone(secret.Data)
		secret.Data[shared.SecretKey] = renewed
		err = r.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		doing := "The client certificate in Secret " + secret.Name + " cannot be renewed by Secret " + s.Object.Name + authoritySuffix
		return s.kubeconfigFailed(doing, err)
	}
	r.kubeconfigs.remember(s.Key(), next)
	return later(next, s.Now)
}

// kubeconfigFailed records why the kubeconfig could not be created or renewed. What a user has to change is awaited.
func (s *scope) kubeconfigFailed(doing string, err error) outcome.Outcome {
	if err == nil || persist.LostRace(err) {
		return outcome.FromError(err) // A lost race means nothing about the Secret.
	}
	var unusable *unusableError
	if errors.As(err, &unusable) {
		s.kubeconfigTrouble = doing + ": " + unusable.Error()
		return outcome.ContinueAfter(lookForAuthority)
	}
	if refusal := persist.Refusal(err); refusal != "" {
		s.kubeconfigTrouble = doing + ": " + refusal
	}
	return outcome.FromError(errors.Wrap(err, doing))
}
