package machine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/outcome"
)

// reconcileCertificates copies to the status when the certificates of a control plane Machine expire. Who knows that,
// a control plane or a bootstrap provider, sets an annotation on the Machine or else on its bootstrap config.
func (r *Reconciler) reconcileCertificates(ctx context.Context, s *scope) outcome.Outcome {
	if _, ok := s.Object.Labels[clusterv1.MachineControlPlaneLabel]; !ok {
		return outcome.Continue()
	}
	if s.bootstrap.ref.IsDefined() && !s.bootstrap.found() {
		return outcome.Continue()
	}
	expiry, err := s.certificatesExpiry()
	if err != nil {
		// Only another annotation can mend it, and that is an event.
		ctrl.LoggerFrom(ctx).Error(err, "The expiry of the certificates is not a time in RFC 3339")
	}
	s.Object.Status.CertificatesExpiryDate = expiry
	return outcome.Continue()
}

// certificatesExpiry reads the annotation; the zero time when there is none.
func (s *scope) certificatesExpiry() (metav1.Time, error) {
	text, ok := s.Object.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	if !ok && s.bootstrap.found() {
		text = s.bootstrap.object.GetAnnotations()[clusterv1.MachineCertificatesExpiryDateAnnotation]
	}
	if text == "" {
		return metav1.Time{}, nil
	}
	expiry, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return metav1.Time{}, err // the caller names the annotation
	}
	return metav1.NewTime(expiry).Rfc3339Copy(), nil
}
