package cluster

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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

// TestNothingIsKeptOfAClusterOfAnotherCore: should it come back, its Secret may have been that core's to write meanwhile.
func TestNothingIsKeptOfAClusterOfAnotherCore(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	theirs := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "c", Labels: map[string]string{clusterv1.WatchLabel: "theirs"},
	}}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(theirs).Build(), WatchFilter: "ours"}
	key := client.ObjectKeyFromObject(theirs)
	r.kubeconfigs.remember(key, time.Time{})
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	g.Expect(err).NotTo(HaveOccurred())
	_, known := r.kubeconfigs.at(key)
	g.Expect(known).To(BeFalse())
}
