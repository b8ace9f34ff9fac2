package certificates

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestASecretThatIsNotWritten: another leader may be faster, which is no error; what a webhook denies is one, whatever code it gives.
func TestASecretThatIsNotWritten(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		failed bool
	}{
		"lost race": {answer: apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "s", nil)},
		"denial": {failed: true, answer: &apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x.example.com" denied the request: no`,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
			g.Expect(admissionregistrationv1.AddToScheme(scheme)).To(Succeed())
			s := &Settings{
				Secret: types.NamespacedName{Namespace: "ns", Name: "s"}, Names: []string{"core.ns.svc"}, Configuration: "core",
				Lifetimes: DefaultLifetimes,
			}
			server := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}},
				&admissionregistrationv1.ValidatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: "core", Annotations: map[string]string{Annotation: "s"}},
				},
			).Build(), interceptor.Funcs{
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
					return test.answer
				},
			})
			k := &keeper{
				settings: s, issuer: newIssuer(s.Names), clock: clock.RealClock{}, client: server, live: server, own: server, manager: server,
			}
			result, err := k.Reconcile(t.Context(), ctrl.Request{})
			if test.failed {
				g.Expect(err).To(MatchError(test.answer))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.RequeueAfter).To(Equal(conflictRetry))
		})
	}
}
