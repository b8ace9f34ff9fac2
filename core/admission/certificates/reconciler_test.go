package certificates

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestReconcile_SecretNotWritten: another replica may be faster, then its Secret is used; what a webhook denies is an error, whatever code
// it gives.
func TestReconcile_SecretNotWritten(t *testing.T) {
	for name, test := range map[string]struct {
		exists bool
		answer error
		failed bool
	}{
		"created by another replica": {answer: apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, "s")},
		"renewed by another replica": {exists: true, answer: apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "s", nil)},
		"denied": {exists: true, failed: true, answer: &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x.example.com" denied the request: no`,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := Settings{Secret: types.NamespacedName{Namespace: "ns", Name: "s"}, Names: []string{"core.ns.svc"}, Configuration: "core"}
			issuer := newIssuer(s.Names, DefaultLifetimes)
			theirs, err := issuer.renew(nil, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			builder := fake.NewClientBuilder().WithObjects(&admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: "core", Annotations: map[string]string{Annotation: "s"}},
			})
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
			if test.exists {
				builder = builder.WithObjects(secret)
			}
			written := secret.DeepCopy()
			written.Data = theirs
			server := interceptor.NewClient(builder.Build(), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
					g.Expect(c.Create(ctx, written)).To(Succeed())
					return test.answer
				},
				Update: func(ctx context.Context, c client.WithWatch, _ client.Object, _ ...client.UpdateOption) error {
					g.Expect(c.Update(ctx, written)).To(Succeed())
					return test.answer
				},
			})
			r := &Reconciler{settings: s, issuer: issuer, client: server, live: server, first: make(chan struct{})}
			_, err = r.Reconcile(t.Context(), ctrl.Request{})
			if test.failed {
				g.Expect(err).To(MatchError(test.answer))
				_, err = r.Installed()
				g.Expect(err).To(MatchError(test.answer))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			served, err := r.GetCertificate(nil)
			g.Expect(err).NotTo(HaveOccurred())
			want, err := tls.X509KeyPair(theirs[servingKey], theirs[servingPrivateKey])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(served.Certificate).To(Equal(want.Certificate))
			g.Expect(r.First()).To(BeClosed())
		})
	}
}
