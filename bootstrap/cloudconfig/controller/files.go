package controller

import (
	"context"
	"errors"
	"fmt"

	pkgerrors "github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
)

// missingSourceError says that a Secret which a file takes its content from is missing or incomplete.
type missingSourceError struct {
	ref bootstrapv1.SecretKeyReference
}

// Error implements error.
func (e *missingSourceError) Error() string {
	return fmt.Sprintf("Secret %s with key %s does not exist", e.ref.Name, e.ref.Key)
}

// files returns the files of one stage; it waits when their content cannot be had.
func (r *Reconciler) files(ctx context.Context, s *scope, atBoot bool) ([]node.File, error) {
	files, err := node.Files(&s.config.Spec, atBoot, func(ref bootstrapv1.SecretKeyReference) ([]byte, error) {
		return r.source(ctx, s.config.Namespace, ref)
	})
	var missing *missingSourceError
	var invalid *node.InvalidContentError
	switch {
	case errors.As(err, &missing):
		s.awaits(bootstrapv1.WaitingForFileSourceReason, missing.Error()+"; a file takes its content from there")
		s.wake(s.now.Add(retryUnwatched))
		return nil, nil
	case errors.As(err, &invalid):
		s.awaits(bootstrapv1.ContentInvalidReason, invalid.Error())
		s.wake(s.now.Add(retryUnwatched))
		return nil, nil
	}
	return files, err
}

func (r *Reconciler) source(ctx context.Context, namespace string, ref bootstrapv1.SecretKeyReference) ([]byte, error) {
	secret := &corev1.Secret{}
	err := r.Secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, pkgerrors.Wrapf(err, "reading Secret %s", ref.Name)
	}
	content, ok := secret.Data[ref.Key]
	if err != nil || !ok {
		return nil, &missingSourceError{ref: ref}
	}
	return content, nil
}
