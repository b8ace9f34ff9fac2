package controller

import (
	"context"
	"errors"

	pkgerrors "github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// ensureAccess lets the machine read its own Secret: by the download token until it has joined, by
// its Node's name afterwards. With the token it may also report in a Lease of its own how far it has come.
func (r *Reconciler) ensureAccess(ctx context.Context, s *scope) outcome.Outcome {
	if s.joined() {
		_, err := s.target.EnsureAccess(ctx, s.node(), false)
		return outcome.FromError(err)
	}
	reports := false
	if s.Object.Status.DataSecretName == "" {
		var err error
		if reports, err = s.target.EnsureReport(ctx); err != nil {
			return outcome.FromError(err)
		}
	}
	existed, err := s.target.EnsureAccess(ctx, "", reports)
	if err != nil {
		return outcome.FromError(err)
	}
	s.target.DownloadToken = s.downloadTokenID()
	if existed && s.Object.Status.DataSecretName == "" {
		// Nothing has been launched with the user data: a Secret that is there already would be read by the machine when it boots.
		if err := r.removeLeftover(ctx, s); err != nil {
			return outcome.FromError(err)
		}
	}
	token, ok := s.downloadToken()
	if !ok {
		return outcome.Continue()
	}
	expiration, err := s.target.EnsureToken(
		ctx,
		s.tokenOptions(token, "Reads the configuration of one machine", s.target.Names.DownloadGroup()),
	)
	if collides(err) && s.Object.Status.DataSecretName == "" {
		return outcome.FromError(r.discardDataSecret(ctx, s, err))
	}
	if err != nil {
		return outcome.FromError(err)
	}
	s.Object.Status.Target.DownloadTokenID = token.ID
	return outcome.ContinueAfter(s.until(nodeaccess.RefreshAt(expiration, s.Object.Spec.TokenTTL())))
}

// discardDataSecret throws away user data that nothing has used yet because another token has the id of
// the one in it. The error that it returns has the next try take another id.
func (r *Reconciler) discardDataSecret(ctx context.Context, s *scope, collision error) error {
	uid := s.dataSecret.UID
	if err := r.Client.Delete(ctx, s.dataSecret, client.Preconditions{UID: &uid}); persist.IgnoreGone(err) != nil {
		return ofManagement(pkgerrors.Wrapf(err, "deleting Secret %s", s.dataSecret.Name))
	}
	s.dataSecret = nil
	return collision
}

func (s *scope) tokenOptions(token nodeaccess.Token, purpose string, groups ...string) nodeaccess.TokenOptions {
	return nodeaccess.TokenOptions{Token: token, Purpose: purpose, Groups: groups, TTL: s.Object.Spec.TokenTTL(), Now: s.Now}
}

// collides reports whether an object of the needed name belongs to another owner.
func collides(err error) bool {
	var foreign *nodeaccess.ForeignError
	return errors.As(err, &foreign)
}
