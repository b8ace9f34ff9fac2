package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/contracts/controller/outcome"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

const (
	// openEvery is how often the version of the Secret is looked at.
	openEvery = time.Minute
	// verifyEvery is how often the cloud is asked about credentials that it has accepted.
	verifyEvery = 10 * time.Minute
	// firstRetry is the wait after the first check that failed; it doubles up to verifyEvery.
	firstRetry = 30 * time.Second
)

// checks keeps, for each identity, the latest check. It is kept in memory only: after a restart each is checked once at once.
type checks struct {
	mu      sync.Mutex
	entries map[string]checked
}

// checked is a check that was made.
type checked struct {
	uid        types.UID
	generation int64
	// of are the credentials; nil if there were none to ask the cloud about.
	of Verifier
	// failures in a row.
	failures int
	// due is when they are checked again, if they stay the same.
	due time.Time
}

func (c *checks) get(name string) checked {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[name]
}

func (c *checks) set(name string, made checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]checked{}
	}
	c.entries[name] = made
}

func (c *checks) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
}

// check finds out whether the credentials are good: at once if they are others than before, else when it is due.
func (r *Reconciler[I]) check(ctx context.Context, s *scope[I]) outcome.Outcome {
	ctx, cancel := context.WithTimeout(ctx, r.CallTimeout)
	defer cancel()
	name, last := s.Object.GetName(), r.checks.get(s.Object.GetName())
	now := checked{uid: s.Object.GetUID(), generation: s.Object.GetGeneration(), failures: last.failures, due: last.due}
	same := last.uid == now.uid && last.generation == now.generation
	v, err := r.open(ctx, s.Object)
	now.of = v
	switch {
	case err != nil:
		s.result = &checkResult{err: err}
	case same && last.of == v && s.Now.Before(last.due):
		return outcome.ContinueAfter(min(openEvery, last.due.Sub(s.Now)))
	default:
		s.result = &checkResult{}
		s.result.holder, s.result.err = v.Verify(ctx)
	}
	r.judgeAccount(ctx, s)
	checksTotal.WithLabelValues(r.Kind, reasonOf(s.result.err)).Inc()
	if s.result.err == nil {
		now.failures, now.due = 0, s.Now.Add(verifyEvery)
	} else {
		if !same || last.of != v {
			now.failures = 0
		}
		now.failures++
		now.due = s.Now.Add(min(firstRetry<<min(now.failures-1, 5), verifyEvery))
	}
	r.checks.set(name, now)
	return outcome.ContinueAfter(min(openEvery, now.due.Sub(s.Now)))
}

// open returns the credentials, unless the spec cannot be right.
func (r *Reconciler[I]) open(ctx context.Context, id I) (Verifier, error) {
	if allowed := id.CommonSpec().AllowedNamespaces; allowed != nil && allowed.Selector != nil {
		if _, err := metav1.LabelSelectorAsSelector(allowed.Selector); err != nil {
			return nil, identity.NewInvalid(driverv1.InvalidConfigurationReason, fmt.Sprintf("spec.allowedNamespaces.selector: %v: correct it", err))
		}
	}
	return r.Open(ctx, id)
}

// judgeAccount refuses credentials of another account while machines use the identity, and accepts them if none does. The machines are read
// from the API server: one that is not known here would seem to have lost its instance.
func (r *Reconciler[I]) judgeAccount(ctx context.Context, s *scope[I]) {
	known := s.Object.CommonStatus().Account
	invalid := identity.AsInvalid(s.result.err)
	other := s.result.err == nil && known != "" && known != s.result.holder.Account
	if !other && (invalid == nil || invalid.Reason != driverv1.AccountChangedReason) {
		return
	}
	switch found, err := r.Machines.Live(ctx, r.APIReader, s.Object.GetName()); {
	case err != nil || found.Count > 0:
		if other {
			s.result.err = identity.NewInvalid(driverv1.AccountChangedReason, fmt.Sprintf("the credentials are of account %s, and the machines that use the "+
				"identity are in account %s: give credentials of that account, or use another identity", s.result.holder.Account, known))
		}
	case !other:
		// The account is forgotten; the next check takes over the new one.
		s.Object.CommonStatus().Account, s.Object.CommonStatus().Principal = "", ""
	}
}
