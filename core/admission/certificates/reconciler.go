package certificates

import (
	"context"
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// Reconciler keeps the Secret, serves what it holds and publishes its authority. Every replica runs one, leader or not: the API server
// decides which one writes the Secret.
type Reconciler struct {
	settings Settings
	issuer   issuer
	client   client.Client
	live     client.Reader

	certificate atomic.Pointer[tls.Certificate]
	first       chan struct{}
	state       atomic.Pointer[state]
}

// state is the result of the last reconcile.
type state struct {
	installed bool
	err       error
}

// GetCertificate is for a TLS server.
func (r *Reconciler) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := r.certificate.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("there is no serving certificate yet")
}

// First is closed as soon as there is a certificate. It stays open where no webhooks are installed.
func (r *Reconciler) First() <-chan struct{} { return r.first }

// Installed reports whether webhooks are installed. The error says why there is no certificate for them.
func (r *Reconciler) Installed() (bool, error) {
	if r.certificate.Load() != nil {
		return true, nil
	}
	if state := r.state.Load(); state != nil {
		return state.installed, state.err
	}
	return false, errors.New("the installed webhooks have not been read yet")
}

// Begin reconciles until that succeeds. It waits for no cache: objects stored in an older version reach the caches through the
// conversion alone, which needs the certificate.
func (r *Reconciler) Begin(ctx context.Context) {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxRetry}
	_ = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) { // It fails only when ctx ends.
		_, err := r.Reconcile(ctx, ctrl.Request{})
		if err != nil {
			ctrl.LoggerFrom(ctx).WithName("webhook-certificate").Error(err, "Starting with the certificate of the webhooks failed")
		}
		return err == nil, nil
	})
}

// Reconcile does nothing where no webhooks are installed. Otherwise it:
//  1. creates or renews the content of the Secret, if that is due;
//  2. serves the certificate of the Secret;
//  3. publishes the authority;
//  4. comes back when the certificate is to be renewed.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (result ctrl.Result, err error) {
	targets, err := r.targets(ctx)
	defer func() { r.state.Store(&state{len(targets) > 0, err}) }()
	if err != nil || len(targets) == 0 {
		return ctrl.Result{}, err
	}
	data, err := r.ensureSecret(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	certificate, err := tls.X509KeyPair(data[servingKey], data[servingPrivateKey])
	if err != nil {
		return ctrl.Result{}, errors.Wrapf(err, "loading the certificate of Secret %s", r.settings.Secret)
	}
	if r.certificate.Swap(&certificate) == nil {
		close(r.first)
	}
	if err := r.publish(ctx, targets, data[authorityKey]); err != nil {
		return ctrl.Result{}, err
	}
	now := time.Now()
	return ctrl.Result{RequeueAfter: max(r.issuer.due(data, now).Sub(now), time.Second)}, nil
}

// ensureSecret returns the content of the Secret, renewed if that is due. If another replica has written it first, that content is used.
func (r *Reconciler) ensureSecret(ctx context.Context) (data map[string][]byte, err error) {
	otherWasFirst := func(err error) bool { return persist.LostRace(err) || persist.NameTaken(err) }
	err = retry.OnError(retry.DefaultRetry, otherWasFirst, func() error {
		secret := &corev1.Secret{}
		if err := r.live.Get(ctx, r.settings.Secret, secret); err != nil && !apierrors.IsNotFound(err) {
			return errors.Wrapf(err, "reading Secret %s", r.settings.Secret)
		}
		if data = secret.Data; len(data) > 0 && len(data[authorityPrivateKey]) == 0 {
			return errors.Errorf("Secret %s was not written by the core: delete it, or have it written under another name", r.settings.Secret)
		}
		renewed, err := r.issuer.renew(data, time.Now())
		if err != nil || renewed == nil {
			return err
		}
		data, secret.Data = renewed, renewed
		ctrl.LoggerFrom(ctx).Info("Renewing the certificate of the webhooks", "secret", r.settings.Secret.String())
		if secret.ResourceVersion != "" {
			return errors.Wrapf(r.client.Update(ctx, secret, fieldOwner), "writing Secret %s", r.settings.Secret)
		}
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: r.settings.Secret.Namespace, Name: r.settings.Secret.Name}
		secret.Type = corev1.SecretTypeTLS
		return errors.Wrapf(r.client.Create(ctx, secret, fieldOwner), "creating Secret %s", r.settings.Secret)
	})
	return data, err
}
