package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/outcome"
)

// syncJoining writes the Secret of a machine that has not joined, with a join token in it, and makes
// the token valid. The token is in the Secret before it exists, hence none is ever left over.
func (r *Reconciler) syncJoining(ctx context.Context, s *scope, current *corev1.Secret, payload *node.Payload) outcome.Outcome {
	token, err := r.joinToken(ctx, s, current)
	if err != nil {
		return outcome.FromError(err)
	}
	written, err := s.target.WriteNodeSecret(ctx, current, nodeData(s, current, payload, token), token.ID)
	if err != nil {
		return outcome.FromError(err)
	}
	if before, ok := joinTokenOf(current); ok && before.ID != token.ID {
		s.events.Normal(bootstrapv1.ValidReason, "ReplaceToken", "Replaced join token %s, which was lost or has expired", before.ID)
	}
	groups := []string{s.target.Names.JoinGroup(), nodeaccess.RequestGroup}
	if !s.Object.Spec.ProviderApproves() {
		groups = append(groups, nodeaccess.SharedJoinGroup)
	}
	expiration, err := s.target.EnsureToken(ctx, s.tokenOptions(token, "Requests the client certificate of one kubelet", groups...))
	if collides(err) {
		// Another token has this id. The next try finds the id recorded but no such token of ours.
		s.Object.Status.Target.JoinTokenID = token.ID
		return outcome.FromError(err)
	}
	if err != nil {
		return outcome.FromError(err)
	}
	if written {
		s.events.Normal(
			bootstrapv1.SyncedReason,
			"WriteNodeSecret",
			"Wrote revision %.12s of the configuration for Node %s",
			payload.Revision,
			s.node(),
		)
	}
	s.Object.Status.Target.JoinTokenID = token.ID
	s.tokensValid = true
	return outcome.ContinueAfter(s.until(nodeaccess.RefreshAt(expiration, s.Object.Spec.TokenTTL())))
}

// joinToken returns the token to join with: the one that the machine was given, or a new one when it
// has none or when its token, which is known to have existed, is gone or has expired. Such a token is not
// brought back: what its kubelet has asked for with it meanwhile may have been approved without effect.
func (r *Reconciler) joinToken(ctx context.Context, s *scope, current *corev1.Secret) (nodeaccess.Token, error) {
	token, ok := joinTokenOf(current)
	if !ok {
		return nodeaccess.NewToken(), nil
	}
	if s.Object.Status.Target.JoinTokenID != token.ID {
		return token, nil
	}
	lives, err := s.target.TokenLives(ctx, token.ID, s.Now)
	if err != nil || lives {
		return token, err
	}
	if err := s.target.RemoveTokens(ctx, token.ID); err != nil {
		return nodeaccess.Token{}, err
	}
	return nodeaccess.NewToken(), nil
}

// removeTokens deletes the machine's tokens: those that the status, the node's Secret and the user
// data name. A machine whose status and Secret name none has none.
func (r *Reconciler) removeTokens(ctx context.Context, s *scope, current *corev1.Secret) error {
	ids := s.recordedTokens()
	token, ok := joinTokenOf(current)
	if !ok && len(ids) == 0 {
		return nil
	}
	ids = append(ids, token.ID)
	secret, err := r.dataSecret(ctx, s, s.Object.Status.DataSecretName)
	if err != nil {
		return err
	}
	s.dataSecret = secret
	if download, ok := s.downloadToken(); ok {
		ids = append(ids, download.ID)
	}
	if err := s.target.RemoveTokens(ctx, ids...); err != nil {
		return err
	}
	if err := s.target.RemoveReport(ctx); err != nil {
		return err
	}
	s.events.Normal(bootstrapv1.NotNeededReason, "RemoveTokens", "Node %s has joined; removed its bootstrap tokens", s.node())
	return nil
}

// retireTokens forgets the tokens of a machine that has joined; they are deleted by now.
func (r *Reconciler) retireTokens(_ context.Context, s *scope) outcome.Outcome {
	if s.joined() {
		s.Object.Status.Target.DownloadTokenID = ""
		s.Object.Status.Target.JoinTokenID = ""
	}
	return outcome.Continue()
}
