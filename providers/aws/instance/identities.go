package instance

import (
	"context"

	"github.com/pkg/errors"

	"millwright.dev/providers/aws/session"
	"millwright.dev/providers/driver"
)

// Sessions are the sessions of AWSIdentities, by name.
type Sessions interface {
	// Get returns the session of an identity.
	Get(ctx context.Context, name string) (*session.Session, error)
	// Latest returns the one that was opened last, without a call.
	Latest(name string) (*session.Session, bool)
}

// held is what is kept for an identity: of one session, so that nothing outlives its credentials.
type held struct {
	session *session.Session
	regions map[string]*region
}

// WithIdentities has the driver call with the sessions of identities in scopes that have one. Call it before the first use.
func (d *Driver) WithIdentities(sessions Sessions) *Driver {
	d.sessions = sessions
	return d
}

// LimitScope is the account in one region, as soon as AWS has reported which account that is; until then the scope itself.
func (d *Driver) LimitScope(scope driver.Scope) string {
	account := ""
	if own := d.ownAccount.Load(); scope.Identity == "" && own != nil {
		account = *own
	}
	if scope.Identity != "" && d.sessions != nil {
		if s, ok := d.sessions.Latest(scope.Identity); ok {
			account = s.Account()
		}
	}
	if account == "" {
		return scope.String()
	}
	return "account " + account + "/" + scope.Location
}

// SetOwnAccount reports which account the process's own credentials are of: scopes without an identity share its limits with those of
// identities of the same account.
func (d *Driver) SetOwnAccount(account string) { d.ownAccount.Store(&account) }

// in returns what is kept for a scope, and makes its client at the first call.
func (d *Driver) in(ctx context.Context, scope driver.Scope) (*region, error) {
	if scope.Identity == "" {
		return d.own(ctx, scope.Location)
	}
	if d.sessions == nil {
		return nil, driver.NewAuthError("", "", errors.New("this provider has no identities"))
	}
	s, err := d.sessions.Get(ctx, scope.Identity)
	if err != nil {
		d.drop(scope.Identity)
		return nil, err // Of a class, and for conditions.
	}
	if r := d.kept(scope, s); r != nil {
		return r, nil
	}
	cfg, err := s.Config(ctx, scope.Location)
	if err != nil {
		return nil, driver.NewAuthError("LoadConfig", "", err)
	}
	return d.keep(scope, s, d.newRegion(scope, NewClient(cfg))), nil
}

// own returns what is kept for a region and the process's own credentials.
func (d *Driver) own(ctx context.Context, name string) (*region, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := d.regions[name]; ok {
		return r, nil
	}
	api, err := d.clients(ctx, name)
	if err != nil {
		return nil, driver.NewAuthError("LoadConfig", "", err)
	}
	r := d.newRegion(driver.Scope{Location: name}, api)
	d.regions[name] = r
	return r, nil
}

// kept returns what is kept for a scope and that session; nil if there is nothing yet.
func (d *Driver) kept(scope driver.Scope, s *session.Session) *region {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.identities[scope.Identity]; h != nil && h.session == s {
		return h.regions[scope.Location]
	}
	return nil
}

// keep keeps it, in place of what was kept for another session; the first one wins.
func (d *Driver) keep(scope driver.Scope, s *session.Session, r *region) *region {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.identities[scope.Identity]
	if h == nil || h.session != s {
		h = &held{session: s, regions: map[string]*region{}}
		d.identities[scope.Identity] = h
	}
	if first := h.regions[scope.Location]; first != nil {
		return first
	}
	h.regions[scope.Location] = r
	return r
}

func (d *Driver) drop(identity string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.identities, identity)
}
