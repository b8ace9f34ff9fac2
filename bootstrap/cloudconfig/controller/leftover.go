package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// removeLeftover removes the node's Secret before there is a machine that it could be for, unless it was written for this one.
func (r *Reconciler) removeLeftover(ctx context.Context, s *scope) error {
	current, err := s.target.NodeSecret(ctx)
	if err != nil || current == nil || nodeaccess.WrittenFor(current) == s.target.DownloadToken {
		return err
	}
	return r.replaceLeftover(ctx, s, current)
}

// currentNodeSecret returns the node's Secret; nil when there is none. One of an earlier Machine of the same name, whose CloudConfig
// was deleted while the target cluster could not be reached, is removed and not inherited: it has the token of that machine and the
// approval that it got. One of an earlier version, which does not name the machine that it was written for, counts as this one's.
func (r *Reconciler) currentNodeSecret(ctx context.Context, s *scope) (*corev1.Secret, error) {
	current, err := s.target.NodeSecret(ctx)
	if err != nil || current == nil || s.joined() {
		return current, err
	}
	of := nodeaccess.WrittenFor(current)
	if of == "" || s.target.DownloadToken == "" || of == s.target.DownloadToken {
		return current, nil
	}
	return nil, r.replaceLeftover(ctx, s, current)
}

func (r *Reconciler) replaceLeftover(ctx context.Context, s *scope, secret *corev1.Secret) error {
	if err := s.target.RemoveLeftover(ctx, secret); err != nil {
		return err
	}
	s.events.Normal(leftoverRemovedEvent, "CleanUp", "Removed Secret %s and the tokens of an earlier Machine %s from the target cluster",
		secret.Name, s.machine.Name)
	return nil
}

// downloadTokenID returns the id of the token in the user data, also when these are lost; "" when it is not known.
func (s *scope) downloadTokenID() string {
	if token, ok := s.downloadToken(); ok {
		return token.ID
	}
	return s.Object.Status.Target.DownloadTokenID
}
