package certificates

import (
	"bytes"
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// conflictRetry is when the Secret is read again that was changed meanwhile.
const conflictRetry = time.Second

// keeper renews what the Secret holds and publishes the trusted authorities. Only the leader does.
type keeper struct {
	settings     *Settings
	issuer       issuer
	clock        clock.PassiveClock
	client       client.Client
	live         client.Reader
	own, manager client.Reader

	// published are the authorities that all targets are known to have, since a moment. It is not kept anywhere: a
	// new leader waits once more.
	published []byte
	since     time.Time
}

// Reconcile brings the Secret and the targets up to date:
//  1. without a marked target nothing is to be done;
//  2. take steps until there is none that is due;
//  3. publish the trusted authorities;
//  4. come back when the next step is due.
func (k *keeper) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	targets, err := k.settings.find(ctx, k.own, k.manager)
	if err != nil || len(targets) == 0 {
		return ctrl.Result{}, err
	}
	secret := &corev1.Secret{}
	if err := k.live.Get(ctx, k.settings.Secret, secret); err != nil {
		if apierrors.IsNotFound(err) {
			// Each replica creates a missing one, this one included; that is an event.
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading Secret %s", k.settings.Secret)
	}
	if foreign(secret) {
		return ctrl.Result{}, errForeign(k.settings)
	}
	c := readContent(secret.Data)
	for {
		now := k.clock.Now()
		s, ask := k.issuer.plan(c, k.settings.Lifetimes, k.settled(c, now), now)
		if s == rest {
			return k.finish(ctx, targets, c, ask)
		}
		if c, err = k.issuer.take(s, c, k.settings.Lifetimes, now); err != nil {
			return ctrl.Result{}, err
		}
		// What is newly signed must be trusted before it is served, and begin has nothing to lose.
		err = k.write(ctx, secret, c)
		if persist.LostRace(err) {
			// Another leader was faster, which is no error.
			return ctrl.Result{RequeueAfter: conflictRetry}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
		ctrl.LoggerFrom(ctx).Info("Changed the certificates of the webhooks", "step", s, "secret", k.settings.Secret.String())
	}
}

// settled reports whether API servers have had time to learn of the trusted authorities.
func (k *keeper) settled(c content, now time.Time) bool {
	return bytes.Equal(k.published, c.trusted) && !now.Before(k.since.Add(k.settings.Lifetimes.Settle))
}

// finish publishes and returns when to reconcile again.
func (k *keeper) finish(ctx context.Context, targets []target, c content, ask time.Time) (ctrl.Result, error) {
	changed, err := publisher{k.client, k.live}.publish(ctx, targets, c.trusted)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := k.clock.Now()
	if changed || !bytes.Equal(k.published, c.trusted) {
		k.published, k.since = c.trusted, now
	}
	if settled := k.since.Add(k.settings.Lifetimes.Settle); !c.next.empty() && settled.Before(ask) {
		ask = settled
	}
	// A timer of a week and more would be fine but for clocks that are set.
	return ctrl.Result{RequeueAfter: min(max(ask.Sub(now), time.Millisecond), maxWait)}, nil
}

// write writes the Secret as it was read, or not at all: another leader may have been faster.
func (k *keeper) write(ctx context.Context, secret *corev1.Secret, c content) error {
	secret.Data = c.data()
	return errors.Wrapf(k.client.Update(ctx, secret, fieldOwner), "writing Secret %s", k.settings.Secret)
}
