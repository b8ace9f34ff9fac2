package cluster

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestADenialSaysWhyAnObjectCannotBeUsed, also where the webhook calls it a conflict; a race that was lost says nothing about the object.
func TestADenialSaysWhyAnObjectCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	r := &reference{}
	lost := errors.Wrap(apierrors.NewConflict(schema.GroupResource{}, "m", nil), "owning Infra m")
	g.Expect(r.failed(lost).Err()).To(MatchError(lost))
	g.Expect(r.err).NotTo(HaveOccurred())
	denied := errors.Wrap(&apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x.example.com" denied the request: no`,
	}}, "owning Infra m")
	g.Expect(r.failed(denied).Err()).To(MatchError(denied))
	g.Expect(r.err).To(MatchError(denied.Error()))
	absent := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusNotFound, Message: `admission webhook "x.example.com" denied the request: no`,
	}}
	g.Expect(r.failed(absent).Err()).To(MatchError(absent))
	g.Expect(apierrors.IsNotFound(r.err)).To(BeFalse(), "the object is there")
}

// TestADenialSaysWhyAnObjectIsNotDeleted, in the condition of the Cluster; a race that was lost is repeated without a word.
func TestADenialSaysWhyAnObjectIsNotDeleted(t *testing.T) {
	g := NewWithT(t)
	s := &scope{}
	s.Original = &clusterv1.Cluster{}
	r := &reference{ref: clusterv1.ContractVersionedObjectReference{Kind: "Infra", Name: "m"}}
	s.progress.message = "Waiting for the deletion of Infra m"
	lost := apierrors.NewConflict(schema.GroupResource{}, "m", nil)
	g.Expect(s.notDeleted(r, lost).Err()).To(MatchError(lost))
	g.Expect(s.progress.message).To(Equal("Waiting for the deletion of Infra m"))
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x.example.com" denied the request: no`,
	}}
	g.Expect(s.notDeleted(r, denied).Err()).To(MatchError(denied))
	g.Expect(s.progress.message).To(ContainSubstring("denied the request: no"))
}
