package controller

import (
	"context"
	"errors"
	"fmt"

	pkgerrors "github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clustersecret "sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/contracts/controller/outcome"
)

// missingSourceError means that a Secret which a file takes its content from is missing, incomplete or not meant for that. It does not
// distinguish them: who may not read Secrets would learn their names.
type missingSourceError struct {
	ref bootstrapv1.SecretKeyReference
}

// Error implements error.
func (e *missingSourceError) Error() string {
	return fmt.Sprintf("Secret %s with key %s and label %s=true does not exist", e.ref.Name, e.ref.Key, bootstrapv1.FileSourceLabel)
}

// refusedSourceError means that the Secret must not be the source of a file.
type refusedSourceError struct {
	ref bootstrapv1.SecretKeyReference
}

// Error implements error.
func (e *refusedSourceError) Error() string {
	return fmt.Sprintf(
		"Secret %s is of a Cluster or a token, by its type or its name, and is never given to a machine: use another Secret",
		e.ref.Name,
	)
}

// files returns the files of one stage; it waits when their content cannot be had.
func (r *Reconciler) files(ctx context.Context, s *scope, atBoot bool) ([]node.File, outcome.Outcome) {
	files, err := node.Files(&s.Object.Spec, atBoot, func(ref bootstrapv1.SecretKeyReference) ([]byte, error) {
		return r.source(ctx, s.Object.Namespace, ref)
	})
	var missing *missingSourceError
	var refused *refusedSourceError
	var invalid *node.InvalidContentError
	switch {
	case errors.As(err, &missing):
		return nil, s.awaitsFor(retryUnwatched, bootstrapv1.WaitingForFileSourceReason, missing.Error()+"; a file takes its content from there")
	case errors.As(err, &refused):
		return nil, s.awaitsFor(retryUnwatched, bootstrapv1.FileSourceRefusedReason, refused.Error())
	case errors.As(err, &invalid):
		return nil, s.awaitsFor(retryUnwatched, bootstrapv1.ContentInvalidReason, invalid.Error())
	}
	return files, outcome.FromError(err)
}

// source reads the content of a file, if the Secret was opened for that. Anyone who may write CloudConfigs chooses the name.
func (r *Reconciler) source(ctx context.Context, namespace string, ref bootstrapv1.SecretKeyReference) ([]byte, error) {
	if clustersecret.HasPurposeSuffix(ref.Name) {
		return nil, &refusedSourceError{ref: ref}
	}
	secret := &corev1.Secret{}
	err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, pkgerrors.Wrapf(err, "reading Secret %s", ref.Name)
	}
	if err != nil || secret.Labels[bootstrapv1.FileSourceLabel] != "true" {
		return nil, &missingSourceError{ref: ref}
	}
	switch secret.Type {
	case clusterv1.ClusterSecretType, corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken:
		return nil, &refusedSourceError{ref: ref}
	}
	content, ok := secret.Data[ref.Key]
	if !ok {
		return nil, &missingSourceError{ref: ref}
	}
	return content, nil
}
