package identity_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/identitytest"
)

// session is what a test makes of credentials.
type session struct{ key string }

// fixture has an identity with a Secret, and counts what is read and opened.
type fixture struct {
	*GomegaWithT
	server   client.WithWatch
	clock    *clocktesting.FakePassiveClock
	sessions *identity.Sessions[*identitytest.Identity, *session]
	reads    int
	opens    int
	readErr  error
	openErr  error
	// opening, if set, is called in Open.
	opening func(context.Context) error
}

func newFixture(t *testing.T) *fixture {
	id := identitytest.New("id", "ns")
	id.Spec.SecretName = "keys"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "keys"}, Data: map[string][]byte{"key": []byte("one")}}
	elsewhere := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keys"},
		Data:       map[string][]byte{"key": []byte("of a tenant")},
	}
	f := &fixture{GomegaWithT: NewWithT(t), server: newServer(t, id, secret, elsewhere), clock: clocktesting.NewFakePassiveClock(time.Now())}
	secrets := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			f.reads++
			if f.readErr != nil {
				return f.readErr
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	f.sessions = &identity.Sessions[*identitytest.Identity, *session]{
		Identities: f.server, Secrets: secrets, Namespace: "own", Kind: identitytest.Kind, Clock: f.clock,
		New:        func() *identitytest.Identity { return &identitytest.Identity{} },
		SecretName: func(id *identitytest.Identity) string { return id.Spec.SecretName },
		Open: func(ctx context.Context, _ *identitytest.Identity, secret *corev1.Secret) (*session, error) {
			f.opens++
			if f.opening != nil {
				if err := f.opening(ctx); err != nil {
					return nil, err
				}
			}
			if f.openErr != nil {
				return nil, f.openErr
			}
			return &session{string(secret.Data["key"])}, nil
		},
	}
	return f
}

func (f *fixture) get(t *testing.T) *session {
	t.Helper()
	got, err := f.sessions.Get(t.Context(), "id")
	f.Expect(err).NotTo(HaveOccurred())
	return got
}

func (f *fixture) rotate(t *testing.T, key string) {
	t.Helper()
	secret := &corev1.Secret{}
	f.Expect(f.server.Get(t.Context(), client.ObjectKey{Namespace: "own", Name: "keys"}, secret)).To(Succeed())
	secret.Data["key"] = []byte(key)
	f.Expect(f.server.Update(t.Context(), secret)).To(Succeed())
}

func (f *fixture) step(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func TestARotatedSecretIsNoticedWithinAMinute(t *testing.T) {
	f := newFixture(t)
	first := f.get(t)
	f.Expect(first.key).To(Equal("one"), "of the provider's namespace, not of the tenant's")
	f.rotate(t, "two")
	for range 100 {
		f.Expect(f.get(t)).To(BeIdenticalTo(first))
	}
	f.Expect(f.reads).To(Equal(1), "the API server is not asked for each call")
	f.step(time.Minute)
	f.Expect(f.get(t).key).To(Equal("two"))
	latest, ok := f.sessions.Latest("id")
	f.Expect(ok).To(BeTrue())
	f.Expect(latest.key).To(Equal("two"), "the former session is dropped")
	f.step(time.Minute)
	second := f.get(t)
	f.Expect(f.get(t)).To(BeIdenticalTo(second), "what has not changed is not opened again")
	f.Expect(f.opens).To(Equal(2))
}

// Refusals must not make each call cost two.
func TestARefusedSessionIsReplacedAtOnceAndNotForEachRefusal(t *testing.T) {
	f := newFixture(t)
	first := f.get(t)
	f.step(15 * time.Second)
	f.rotate(t, "two")
	f.sessions.Refused("id", first)
	second := f.get(t)
	f.Expect(second.key).To(Equal("two"))
	f.sessions.Refused("id", first)
	f.Expect(f.get(t)).To(BeIdenticalTo(second), "a late answer to a call with the former session says nothing about this one")
	for range 100 {
		f.sessions.Refused("id", second)
		second = f.get(t)
	}
	f.Expect(f.opens).To(Equal(2))
	for range 6 {
		f.step(10 * time.Second)
		second = f.get(t)
		f.sessions.Refused("id", second)
	}
	f.Expect(f.opens).To(BeNumerically("<=", 2+6), "once in ten seconds")
	f.sessions.Refused("nobody", second)
}

func TestAChangedIdentityHasAnotherSession(t *testing.T) {
	f := newFixture(t)
	first := f.get(t)
	id := &identitytest.Identity{}
	f.Expect(f.server.Get(t.Context(), client.ObjectKey{Name: "id"}, id)).To(Succeed())
	id.Generation++
	f.Expect(f.server.Update(t.Context(), id)).To(Succeed())
	f.Expect(f.get(t)).NotTo(BeIdenticalTo(first))

	f.Expect(f.server.Delete(t.Context(), id)).To(Succeed())
	_, err := f.sessions.Get(t.Context(), "id")
	f.Expect(driver.ClassOf(err)).To(Equal(driver.ClassRefused))
	_, ok := f.sessions.Latest("id")
	f.Expect(ok).To(BeFalse(), "nothing is kept of an identity that is gone")
}

func TestASecretThatCannotBeUsed(t *testing.T) {
	f := newFixture(t)
	f.openErr = identity.NewInvalid(driverv1.CredentialsInvalidReason, "the key is none")
	for range 10 {
		_, err := f.sessions.Get(t.Context(), "id")
		f.Expect(driver.IsAuth(err)).To(BeTrue())
		f.Expect(identity.AsInvalid(err).Reason).To(Equal(driverv1.CredentialsInvalidReason))
		f.Expect(err.Error()).NotTo(ContainSubstring("the key is none"), "users of the identity do not see the content of its Secret")
	}
	f.Expect(f.opens).To(Equal(1))
	f.openErr = nil
	f.step(10 * time.Second)
	f.Expect(f.get(t).key).To(Equal("one"))

	f.Expect(f.server.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "keys"}})).To(Succeed())
	f.step(time.Minute)
	_, err := f.sessions.Get(t.Context(), "id")
	f.Expect(identity.AsInvalid(err)).To(HaveField("Reason", driverv1.SecretNotFoundReason))
	_, ok := f.sessions.Latest("id")
	f.Expect(ok).To(BeFalse(), "credentials that were taken away are not used")
}

func TestAnAPIServerThatFails(t *testing.T) {
	f := newFixture(t)
	first := f.get(t)
	f.readErr = apierrors.NewServiceUnavailable("later")
	f.step(time.Minute)
	f.Expect(f.get(t)).To(BeIdenticalTo(first), "what it said last holds")
	f.readErr = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "keys", errors.New("no right"))
	f.step(time.Minute)
	_, err := f.sessions.Get(t.Context(), "id")
	f.Expect(identity.AsInvalid(err)).To(HaveField("Message", ContainSubstring("no right")), "the refuser's words")
}

// The caller that opens the session may hang; one that waits for it gives up at their own deadline, and others are not concerned.
func TestOpeningThatHangsBlocksNoOther(t *testing.T) {
	f := newFixture(t)
	other := identitytest.New("other", "ns")
	other.UID, other.Spec.SecretName = "other", "keys"
	f.Expect(f.server.Create(t.Context(), other)).To(Succeed())
	begun, hung := make(chan struct{}), make(chan error, 1)
	f.opening = func(ctx context.Context) error {
		f.opening = nil
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := f.sessions.Get(ctx, "id")
		hung <- err
	}()
	<-begun
	_, err := f.sessions.Get(t.Context(), "other")
	f.Expect(err).NotTo(HaveOccurred())
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = f.sessions.Get(ended, "id")
	f.Expect(driver.ClassOf(err)).To(Equal(driver.ClassRefused))
	cancel()
	f.Expect(<-hung).To(HaveOccurred())
	f.Expect(f.get(t).key).To(Equal("one"), "a cancelled caller proves nothing")
}

// Who has read an identity before another version was opened must not bring the former one back.
func TestAnOlderVersionReplacesNoNewerOne(t *testing.T) {
	f := newFixture(t)
	f.get(t)
	var newer *session
	f.sessions.Identities = interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if newer == nil {
				newer = &session{}
				id := &identitytest.Identity{}
				f.Expect(f.server.Get(ctx, key, id)).To(Succeed())
				id.Generation++
				f.Expect(f.server.Update(ctx, id)).To(Succeed())
				newer = f.get(t)
			}
			return err
		},
	})
	f.Expect(f.get(t)).To(BeIdenticalTo(newer))
	f.Expect(f.opens).To(Equal(2))
}
