package machine

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/machines"
)

// TestADenialSaysWhyAnObjectCannotBeUsed, also where the webhook calls it a conflict; a race that was lost says nothing about the object.
func TestADenialSaysWhyAnObjectCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	r := &reference{}
	lost := errors.Wrap(apierrors.NewConflict(schema.GroupResource{}, "m", nil), "owning Infra m")
	g.Expect(r.failed(lost).Err()).To(MatchError(lost))
	g.Expect(r.err).NotTo(HaveOccurred())
	denied := errors.Wrap(deniedAsConflict(), "owning Infra m")
	g.Expect(r.failed(denied).Err()).To(MatchError(denied))
	g.Expect(r.err).To(MatchError(denied.Error()))
	absent := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusNotFound, Message: `admission webhook "x.example.com" denied the request: no`,
	}}
	g.Expect(r.failed(absent).Err()).To(MatchError(absent))
	g.Expect(apierrors.IsNotFound(r.err)).To(BeFalse(), "the object is there")
}

// deniedAsConflict is the answer to a write that a webhook denies with the code of a conflict.
func deniedAsConflict() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x.example.com" denied the request: no`,
	}}
}

// TestAPreservedMachineThatMayNotBeDeleted reports that; after a race that was lost another reconcile tries again.
func TestAPreservedMachineThatMayNotBeDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		reports string
	}{
		"lost race": {apierrors.NewConflict(schema.GroupResource{}, "m", nil), ""},
		"denial":    {deniedAsConflict(), "denied the request: no"},
		"denial as not found": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Code: http.StatusNotFound, Message: `admission webhook "x.example.com" denied the request: no`,
		}}, "denied the request: no"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := leavingScope()
			s.Original.ResourceVersion = "1"
			machines.Preserve(s.Object, &clusterv1.MachineSet{}, s.Now, s.Now)
			r := &Reconciler{Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return test.err },
			})}
			r.reconcilePreserved(t.Context(), s)
			condition := s.preservedCondition()
			if test.reports == "" {
				g.Expect(condition.Reason).NotTo(Equal(PreservationEndedReason))
				return
			}
			g.Expect(condition.Reason).To(Equal(PreservationEndedReason))
			g.Expect(condition.Message).To(ContainSubstring(test.reports))
		})
	}
}

// TestAnObjectThatCannotBeDeletedIsReported with why; after a race that was lost it is only waited for.
func TestAnObjectThatCannotBeDeletedIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		message string
	}{
		"lost race": {apierrors.NewConflict(schema.GroupResource{}, "m", nil), "Waiting"},
		"denial":    {deniedAsConflict(), "Infra m cannot be deleted: a webhook denies it: " + deniedAsConflict().Error()},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, object := ofInfra(g)
			r := &Reconciler{Client: interceptor.NewClient(server, interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return test.err },
			})}
			s := leavingScope()
			s.infrastructure.ref = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "Infra", Name: "m"}
			s.infrastructure.object, s.infrastructure.err = external.Object{Unstructured: object, Contract: version.V1Beta2}, nil
			g.Expect(r.deleteInfrastructure(t.Context(), s).Err()).To(MatchError(test.err))
			g.Expect(s.progress.message).To(HavePrefix(test.message))
		})
	}
}
