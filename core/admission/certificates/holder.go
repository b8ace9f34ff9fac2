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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// retries are the delays between attempts at the start.
var retries = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxRetry}

// Holder holds the serving certificate that the Secret has at the moment. Each replica has one.
type Holder struct {
	settings     *Settings
	issuer       issuer
	clock        clock.PassiveClock
	client       client.Client
	live         client.Reader
	own, manager client.Reader

	certificate atomic.Pointer[tls.Certificate]
	state       atomic.Pointer[string]
	first       chan struct{}
}

// GetCertificate is for a TLS server.
func (h *Holder) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if certificate := h.certificate.Load(); certificate != nil {
		return certificate, nil
	}
	return nil, errors.New("there is no serving certificate yet")
}

// First is closed as soon as there is a certificate. It stays open where no webhooks are installed.
func (h *Holder) First() <-chan struct{} { return h.first }

// Installed reports whether an API server knows of the webhooks; the error is why that is not known yet, or that they
// are installed and there is no certificate.
func (h *Holder) Installed() (bool, error) {
	if h.certificate.Load() != nil {
		return true, nil
	}
	state := h.state.Load()
	switch {
	case state == nil:
		return false, errors.New("the installed webhooks were not read yet")
	case *state != "":
		return true, errors.New(*state)
	}
	return false, nil
}

// Begin loads the certificate without a cache, publishes the authorities that the Secret has, and keeps trying until
// that works; it does nothing where no webhooks are installed. None of it must wait for the caches: objects stored in
// an older version reach them through the conversion alone. So it is not left to the leader, which is one only when
// its caches are filled. Should a leader have changed the authorities in this very moment, it publishes them once more.
func (h *Holder) Begin(ctx context.Context) {
	log := ctrl.LoggerFrom(ctx).WithName("webhook-certificate")
	_ = retries.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) { // It fails only when ctx ends.
		err := h.look(ctx, h.live, h.live)
		if err == nil {
			err = h.publish(ctx)
		}
		if err != nil {
			log.Error(err, "Beginning with the certificate of the webhooks")
		}
		return err == nil, nil
	})
}

// publish publishes the authorities that the Secret has.
func (h *Holder) publish(ctx context.Context) error {
	targets, err := h.settings.find(ctx, h.live, h.live)
	if err != nil || len(targets) == 0 {
		return err
	}
	secret := &corev1.Secret{}
	if err := h.live.Get(ctx, h.settings.Secret, secret); err != nil {
		return errors.Wrapf(err, "reading Secret %s", h.settings.Secret)
	}
	if trusted := readContent(secret.Data).trusted; len(trusted) > 0 {
		_, err = publisher{h.client, h.live}.publish(ctx, targets, trusted)
	}
	return err
}

// Reconcile loads the certificate that the Secret has now.
func (h *Holder) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, h.look(ctx, h.own, h.manager)
}

// look loads the certificate; where webhooks are installed and there is no Secret, it makes the first one. That is no
// matter of the leader: the replica that leads may be of a version that knows no webhooks, and goes only when this
// one is ready.
func (h *Holder) look(ctx context.Context, own, crds client.Reader) error {
	targets, err := h.settings.find(ctx, own, crds)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		h.setState("")
		return nil
	}
	secret := &corev1.Secret{}
	err = own.Get(ctx, h.settings.Secret, secret)
	if apierrors.IsNotFound(err) {
		h.setState("Secret " + h.settings.Secret.String() + " with the certificate does not exist yet")
		return h.create(ctx)
	}
	if err != nil {
		return errors.Wrapf(err, "reading Secret %s", h.settings.Secret)
	}
	h.load(secret)
	return nil
}

// create makes the first Secret. When another replica was faster, its Secret is loaded.
func (h *Holder) create(ctx context.Context) error {
	c, err := h.issuer.take(begin, content{}, h.settings.Lifetimes, h.clock.Now())
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.settings.Secret.Namespace, Name: h.settings.Secret.Name},
		Type:       corev1.SecretTypeTLS,
		Data:       c.data(),
	}
	err = h.client.Create(ctx, secret, fieldOwner)
	if persist.NameTaken(err) {
		err = h.live.Get(ctx, h.settings.Secret, secret)
	}
	if err != nil {
		return errors.Wrapf(err, "creating Secret %s", h.settings.Secret)
	}
	h.load(secret)
	return nil
}

// load takes the certificate over. One that cannot be used leaves the last one in place, for the leader to repair; one of another owner,
// which no API server trusts, until it is deleted.
func (h *Holder) load(secret *corev1.Secret) {
	if foreign(secret) {
		h.setState(errForeign(h.settings).Error())
		return
	}
	c := readContent(secret.Data)
	certificate, err := tls.X509KeyPair(c.serving.certificate, c.serving.key)
	if err != nil {
		h.setState("the certificate in Secret " + h.settings.Secret.String() + " cannot be used")
		// The leader is woken by the same Secret and replaces the content; that is an event.
		return
	}
	if h.certificate.Swap(&certificate) == nil {
		close(h.first)
	}
}

func (h *Holder) setState(state string) { h.state.Store(&state) }
