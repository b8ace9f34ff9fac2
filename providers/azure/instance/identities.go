package instance

import (
	"context"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
)

// Sessions are the sessions of AzureIdentities, by name.
type Sessions interface {
	// Get returns the session of an identity.
	Get(ctx context.Context, name string) (*session.Session, error)
	// Latest returns the one that was opened last, without a call.
	Latest(name string) (*session.Session, bool)
}

// WithIdentities has the driver call with the sessions of identities in scopes that have one. Call it before the first use.
func (d *Driver) WithIdentities(sessions Sessions) *Driver {
	d.sessions = sessions
	return d
}

// LimitScope is the subscription and who calls for it, by which Azure Resource Manager counts, as soon as that is known; until then the
// subscription and the identity.
func (d *Driver) LimitScope(scope driver.Scope) string {
	subscription, _ := split(scope)
	who := ""
	switch {
	case scope.Identity == "":
		who = d.own.caller()
	case d.sessions != nil:
		if s, ok := d.sessions.Latest(scope.Identity); ok {
			who = s.Principal()
		}
	}
	switch {
	case who != "":
		return subscription + "/principal " + who
	case scope.Identity != "":
		return subscription + "/identity " + scope.Identity
	}
	return subscription
}

// in returns the clients of a scope's subscription, with its credentials, and the resource group.
func (d *Driver) in(ctx context.Context, scope driver.Scope) (*subscription, string, error) {
	if scope.Identity == "" {
		return d.own.of(scope)
	}
	if d.sessions == nil {
		return nil, "", driver.NewAuthError("", "", errors.New("this provider has no identities"))
	}
	s, err := d.sessions.Get(ctx, scope.Identity)
	if err != nil {
		d.drop(scope.Identity)
		return nil, "", err // Of a class, and for conditions.
	}
	return d.keep(scope.Identity, s).of(scope)
}

// keep returns the clients of a session, in place of those of another session: nothing outlives its credentials.
func (d *Driver) keep(identity string, s *session.Session) *clients {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.identities[identity]
	if c == nil || c.session != s {
		c = newClients(d.config, s)
		d.identities[identity] = c
	}
	return c
}

func (d *Driver) drop(identity string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.identities, identity)
}

// split returns the subscription and the resource group of a scope.
func split(scope driver.Scope) (subscription, group string) {
	subscription, group, _ = strings.Cut(scope.Location, "/")
	return subscription, group
}
