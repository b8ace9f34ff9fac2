package controller

import (
	"context"
	"errors"

	pkgerrors "github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/target"
)

// ensureAccess lets the machine read its own Secret: by the download token until it has joined, by
// its Node's name afterwards. With the token it may also say in a Lease of its own how far it has come.
func (r *Reconciler) ensureAccess(ctx context.Context, s *scope) error {
	if s.joined() {
		_, err := s.target.EnsureAccess(ctx, s.node(), false)
		return err
	}
	reports := false
	if s.config.Status.DataSecretName == "" {
		var err error
		if reports, err = s.target.EnsureReport(ctx); err != nil {
			return err
		}
	}
	existed, err := s.target.EnsureAccess(ctx, "", reports)
	if err != nil {
		return err
	}
	s.target.DownloadToken = s.downloadTokenID()
	if existed && s.config.Status.DataSecretName == "" {
		// Nothing has been launched with the user data: a Secret that is there already would be read by the machine when it boots.
		if err := r.removeLeftover(ctx, s); err != nil {
			return err
		}
	}
	token, ok := s.downloadToken()
	if !ok {
		return nil
	}
	expiration, err := s.target.EnsureToken(ctx, s.tokenOptions(token, "Reads the configuration of one machine", s.target.Names.DownloadGroup()))
	if collides(err) && s.config.Status.DataSecretName == "" {
		return r.discardDataSecret(ctx, s, err)
	}
	if err != nil {
		return err
	}
	s.config.Status.Target.DownloadTokenID = token.ID
	s.wake(target.RefreshAt(expiration, s.config.Spec.TokenTTL()))
	return nil
}

// discardDataSecret throws away user data that nobody has used yet because another token has the id of
// the one in it. The error that it returns has the next try take another id.
func (r *Reconciler) discardDataSecret(ctx context.Context, s *scope, collision error) error {
	uid := s.dataSecret.UID
	if err := r.Client.Delete(ctx, s.dataSecret, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return pkgerrors.Wrapf(err, "deleting Secret %s", s.dataSecret.Name)
	}
	s.dataSecret = nil
	return collision
}

func (s *scope) tokenOptions(token target.Token, purpose string, groups ...string) target.TokenOptions {
	return target.TokenOptions{Token: token, Purpose: purpose, Groups: groups, TTL: s.config.Spec.TokenTTL(), Now: s.now}
}

// collides says whether an object of the needed name belongs to somebody else.
func collides(err error) bool {
	var foreign *target.ForeignError
	return errors.As(err, &foreign)
}
