package approval

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestAForeignNodeIsNotRejoined: a Machine is created with the name and the provider ID of an existing Node, as users who may
// write Machines can. It gets no certificate for that Node.
func TestAForeignNodeIsNotRejoined(t *testing.T) {
	provisioned := func(f *fixture) { f.machine.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	for name, tc := range map[string]struct {
		change      func(*fixture)
		annotations map[string]string
		// says is part of the event; empty when the request is approved.
		says string
	}{
		"its own": {change: provisioned},
		"its own, annotated": {change: provisioned, annotations: map[string]string{
			clusterv1.MachineAnnotation: "machine-1", clusterv1.ClusterNameAnnotation: "cluster", clusterv1.ClusterNamespaceAnnotation: "rejoin-1"}},
		"older than the Machine": {change: func(f *fixture) {
			provisioned(f)
			f.machine.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		}, says: "older than the Machine"},
		"a provider ID that only the spec says": {change: func(*fixture) {}, says: "not of this Machine"},
		"another Machine's": {change: provisioned, annotations: map[string]string{
			clusterv1.MachineAnnotation: "cp-0", clusterv1.ClusterNameAnnotation: "cluster", clusterv1.ClusterNamespaceAnnotation: "rejoin-1"},
			says: "of Machine rejoin-1/cp-0"},
		"a namesake's of another namespace": {change: provisioned, annotations: map[string]string{
			clusterv1.MachineAnnotation: "machine-1", clusterv1.ClusterNameAnnotation: "cluster", clusterv1.ClusterNamespaceAnnotation: "theirs"},
			says: "of Machine theirs/machine-1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "rejoin-1")
			f.machine.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
			defer func() { f.Expect(f.remote.Delete(t.Context(), f.nodeSecret())).To(Succeed()) }()
			existing := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "machine-1", Annotations: tc.annotations},
				Spec:       corev1.NodeSpec{ProviderID: "aws:///a/i-1"},
			}
			f.Expect(f.remote.Create(t.Context(), existing)).To(Succeed())
			defer func() { f.Expect(f.remote.Delete(t.Context(), existing)).To(Succeed()) }()
			request := "rejoin-" + string(existing.UID)
			f.ask(request)
			tc.change(f)
			f.Expect(f.reconcile(request)).To(Succeed())
			f.Expect(f.approved(request)).To(Equal(tc.says == ""))
			f.Expect(f.events.Events).To(Receive(ContainSubstring(tc.says)))
		})
	}
}

// TestAPauseThatTheCacheDoesNotShow: nothing is approved for a Machine that is paused, and the request is checked again.
func TestAPauseThatTheCacheDoesNotShow(t *testing.T) {
	f := newFixture(t, "paused")
	f.ask("paused-1")
	now := f.machine.DeepCopy()
	now.Annotations = pausedAnnotation
	f.live = fake.NewClientBuilder().WithScheme(scheme).WithObjects(now).Build()
	result, err := f.try("paused-1")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.approved("paused-1")).To(BeFalse())
	f.Expect(result.RequeueAfter).To(BeNumerically(">", 0), "no event marks the end of the pause")
	f.live = nil
	f.Expect(f.reconcile("paused-1")).To(Succeed())
	f.Expect(f.approved("paused-1")).To(BeTrue())
}
