// Package identity keeps the calls for objects of different tenants apart: which object may use which identity (Guard), and what a
// provider makes of an identity's credentials (Sessions). See README.md.
package identity

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

const (
	// recheckAfter is how long a session is used before its Secret is read again.
	recheckAfter = time.Minute
	// retryAfter is how long a failure, or a session that the cloud has refused, is kept before it is tried again.
	retryAfter = 10 * time.Second
)

// Sessions keeps what a provider has made of the credentials of each identity: I is the identity kind, S what it is made into, normally
// a pointer. A session belongs to one version of the identity and of its Secret; with another version there is another session, and the
// former one is dropped. All methods may be called concurrently. Waiting for one identity does not delay callers with another.
type Sessions[I Object, S comparable] struct {
	// Identities reads identities from the cache.
	Identities client.Reader
	// Secrets reads Secrets from the API server itself: they are not cached.
	Secrets client.Reader
	// Namespace is where Secrets are read, and nowhere else: that of the provider.
	Namespace string
	// Kind of the identities.
	Kind string
	// New returns an empty identity.
	New func() I
	// SecretName returns the name of the Secret with the credentials; empty if there is none.
	SecretName func(I) string
	// Open creates a session; secret is nil if the identity names none. It must honour the context. Its error is an Invalid where a person
	// has to change something.
	Open func(ctx context.Context, id I, secret *corev1.Secret) (S, error)
	// Clock for the waits.
	Clock clock.PassiveClock

	mu      sync.Mutex
	entries map[string]*entry[S]
}

// entry is what is kept for one name. Its fields but latest belong to who holds turn.
type entry[S any] struct {
	turn    chan struct{}
	version version
	session S
	err     error
	open    bool
	// until is when the version is to be read again.
	until time.Time

	mu sync.Mutex
	// latest is the session that is in use; refused is true if the cloud has refused it.
	latest  S
	current bool
	refused bool
	// opened is when the latest session was opened.
	opened time.Time
}

// version is what a session was made of.
type version struct {
	identity, secret types.UID
	generation       int64
	secretVersion    string
}

// Get returns the session of an identity. The error is one that driver.ClassOf gives class Auth if a person has to act, else Refused.
func (s *Sessions[I, S]) Get(ctx context.Context, name string) (S, error) {
	var none S
	id := s.New()
	if err := s.Identities.Get(ctx, client.ObjectKey{Name: name}, id); err != nil {
		if apierrors.IsNotFound(err) {
			s.forget(name)
		}
		return none, driver.NewRefusedError("", "", errors.Wrapf(err, "reading %s %s", s.Kind, name))
	}
	e := s.entry(name)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return none, driver.NewRefusedError("", "", errors.Errorf("the credentials of %s %s did not come within the time limit", s.Kind, name))
	}
	// Another version may have come while others had their turn: what is kept is never replaced by what is older.
	if err := s.Identities.Get(ctx, client.ObjectKey{Name: name}, id); err != nil {
		return none, driver.NewRefusedError("", "", errors.Wrapf(err, "reading %s %s", s.Kind, name))
	}
	s.refresh(ctx, id, e)
	if e.err != nil {
		return none, s.explained(name, e.err)
	}
	return e.session, nil
}

// refresh brings the entry in line with the identity and its Secret, as far as it is time to look.
func (s *Sessions[I, S]) refresh(ctx context.Context, id I, e *entry[S]) {
	now := s.Clock.Now()
	refused := e.takeRefusal(now)
	same := e.version.identity == id.GetUID() && e.version.generation == id.GetGeneration()
	if same && !refused && now.Before(e.until) {
		return
	}
	at := version{identity: id.GetUID(), generation: id.GetGeneration()}
	secret, err := s.readSecret(ctx, id)
	switch {
	case err != nil && AsInvalid(err) == nil && same && e.open:
		e.until = now.Add(retryAfter) // The API server fails: its last answer holds.
		return
	case err != nil:
		e.fail(at, err, now)
		return
	case secret != nil:
		at.secret, at.secretVersion = secret.UID, secret.ResourceVersion
	}
	if e.open && at == e.version && !refused {
		e.until = now.Add(recheckAfter)
		return
	}
	session, err := s.Open(ctx, id, secret)
	if err != nil {
		e.fail(at, err, now)
		return
	}
	e.succeed(at, session, now)
}

// readSecret reads the Secret that the identity names; nil if it names none.
func (s *Sessions[I, S]) readSecret(ctx context.Context, id I) (*corev1.Secret, error) {
	name := s.SecretName(id)
	if name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := s.Secrets.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, secret)
	switch refusal := persist.Refusal(err); {
	case apierrors.IsNotFound(err):
		return nil, NewInvalid(driverv1.SecretNotFoundReason, fmt.Sprintf("Secret %s does not exist in namespace %s, that of the provider: create it",
			name, s.Namespace))
	case refusal != "" && apierrors.IsForbidden(err):
		return nil, NewInvalid(driverv1.NotVerifiedReason, refusal+". Allow it to the provider")
	}
	return secret, errors.Wrapf(err, "reading Secret %s/%s", s.Namespace, name)
}

func (s *Sessions[I, S]) explained(name string, err error) error {
	why := &unusable{fmt.Sprintf("the credentials of %s %s cannot be used; see its condition Ready", s.Kind, name), err}
	if AsInvalid(err) != nil || driver.IsAuth(err) {
		return driver.NewAuthError("", "", why)
	}
	return driver.NewRefusedError("", "", why)
}

// Latest returns the session that was opened last, without a call; false if there is none.
func (s *Sessions[I, S]) Latest(name string) (S, bool) {
	s.mu.Lock()
	e := s.entries[name]
	s.mu.Unlock()
	if e == nil {
		var none S
		return none, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.latest, e.current
}

// Refused is called when the cloud has refused the credentials of a session: the next Get reads the Secret, and opens another session, but
// not sooner than ten seconds after the one before, so that refusals cost a bounded number of calls.
func (s *Sessions[I, S]) Refused(name string, session S) {
	s.mu.Lock()
	e := s.entries[name]
	s.mu.Unlock()
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current && e.latest == session {
		e.refused = true
	}
}

func (s *Sessions[I, S]) entry(name string) *entry[S] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = map[string]*entry[S]{}
	}
	e := s.entries[name]
	if e == nil {
		e = &entry[S]{turn: make(chan struct{}, 1)}
		s.entries[name] = e
	}
	return e
}

func (s *Sessions[I, S]) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, name)
}

func (e *entry[S]) takeRefusal(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.refused || now.Before(e.opened.Add(retryAfter)) {
		return false
	}
	e.refused = false
	return true
}

// fail keeps an error for a short while. No session of an earlier version outlives it.
func (e *entry[S]) fail(at version, err error, now time.Time) {
	var none S
	e.version, e.session, e.err, e.open, e.until = at, none, err, false, now.Add(retryAfter)
	if errors.Is(err, context.Canceled) {
		e.until = now // Who asked has given up; that says nothing.
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.latest, e.current, e.refused = none, false, false
}

func (e *entry[S]) succeed(at version, session S, now time.Time) {
	e.version, e.session, e.err, e.open, e.until = at, session, nil, true, now.Add(recheckAfter)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.latest, e.current, e.refused, e.opened = session, true, false, now
}
