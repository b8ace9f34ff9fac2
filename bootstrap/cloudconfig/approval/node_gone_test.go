package approval

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kubelet without rotation does not ask again: its request waits for the Node that an earlier machine of the name has left.
func TestARequestThatALeftoverNodeHoldsUpIsLookedAtAgain(t *testing.T) {
	f := newFixture(t, "node-gone")
	leftover := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "machine-1"}, Spec: corev1.NodeSpec{ProviderID: "aws:///a/i-before"}}
	f.Expect(f.remote.Create(t.Context(), leftover)).To(Succeed())
	t.Cleanup(func() { _ = f.as("", nil).Delete(t.Context(), leftover) })
	f.ask("node-gone-1")
	result, err := f.try("node-gone-1")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.approved("node-gone-1")).To(BeFalse())
	f.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))
	f.Expect(f.remote.Delete(t.Context(), leftover)).To(Succeed())
	f.Expect(f.reconcile("node-gone-1")).To(Succeed())
	f.Expect(f.approved("node-gone-1")).To(BeTrue())
}

// What no Node holds up is not looked at again without an event, and what one does ever less often.
func TestHowOftenARequestIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	csr := firstRequest(t)
	csr.CreationTimestamp = metav1.NewTime(now)
	observed := joining()
	g.Expect(nodeRetry(csr, observed, now)).To(BeZero())
	observed.Node = &ObservedNode{Older: true}
	first := nodeRetry(csr, observed, now)
	g.Expect(first).To(BeNumerically(">", 0))
	g.Expect(nodeRetry(csr, observed, now.Add(time.Hour))).To(And(BeNumerically(">", 10*first), BeNumerically("<", time.Hour)))
	observed.Deleting = true
	g.Expect(nodeRetry(csr, observed, now)).To(BeZero(), "it is not approved when the Node is gone either")
}
