package controller

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// patchStatus sets the conditions and writes the status, if it differs from what was read. It is the
// only writer of the status.
func (r *Reconciler) patchStatus(ctx context.Context, original, config *bootstrapv1.CloudConfig, conditions []metav1.Condition) error {
	config.Status.ObservedGeneration = config.Generation
	for _, c := range conditions {
		c.ObservedGeneration = config.Generation
		c.LastTransitionTime = metav1.NewTime(r.Clock.Now())
		meta.SetStatusCondition(&config.Status.Conditions, c)
	}
	if equality.Semantic.DeepEqual(original.Status, config.Status) {
		return nil
	}
	err := r.Client.Status().Patch(ctx, config, client.MergeFrom(original))
	return errors.Wrap(client.IgnoreNotFound(err), "writing the status")
}

// event records that something was done; it is called after the write has succeeded.
func (r *Reconciler) event(config *bootstrapv1.CloudConfig, reason, action, format string, args ...any) {
	r.Recorder.Eventf(config, nil, corev1.EventTypeNormal, reason, action, format, args...)
}

// warn records that something needs attention.
func (r *Reconciler) warn(config *bootstrapv1.CloudConfig, reason, action, format string, args ...any) {
	r.Recorder.Eventf(config, nil, corev1.EventTypeWarning, reason, action, format, args...)
}
