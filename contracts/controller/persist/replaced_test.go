package persist_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
)

// TestAStatusOfAnotherObject: the API server does not compare UIDs when a status is patched. An object that was deleted and created again
// since it was read has the status of the first then: that is a lost race, so that it is put right.
func TestAStatusOfAnotherObject(t *testing.T) {
	g := NewWithT(t)
	c, _ := fakeClient(g)
	first := &clusterv1.Machine{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, first)).To(Succeed())
	first.UID = "first"
	after := first.DeepCopy()
	after.Status.Phase = "Running"
	written, err := persist.OwnStatus(t.Context(), c, first, after, status)
	g.Expect(written).To(BeFalse())
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring("another object has the name of Machine ns/m")))
}
