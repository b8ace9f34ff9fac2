package machine_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// denyMachines has a webhook deny changes of Machines of the namespace, with that answer.
func (f *fixture) denyMachines(answer metav1.Status) (allow func()) {
	f.t.Helper()
	probe := f.machine.DeepCopy()
	probe.ObjectMeta = metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}
	return core.Deny(f.t, probe, admissionv1.Update, answer)
}

// TestWhatAWebhookDeniesIsReported, whatever code and reason it gives. Many give neither, and the API server adds no reason.
func TestWhatAWebhookDeniesIsReported(t *testing.T) {
	t.Parallel()
	const why = "finalizers need a ticket"
	for name, answer := range map[string]metav1.Status{
		"a message alone":              {Message: why},
		"as an invalid request":        {Message: why, Code: http.StatusBadRequest},
		"as a conflict":                {Message: why, Code: http.StatusConflict},
		"as a conflict, by its reason": {Message: why, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict},
		"as not found":                 {Message: why, Code: http.StatusNotFound},
		"as a failure of its own":      {Message: why, Code: http.StatusInternalServerError},
		"as too many requests":         {Message: why, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			allow := f.denyMachines(answer)
			f.createMachine()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "Ready")).To(Equal("Unknown/InternalError"))
				g.Expect(message(m, "Ready")).To(ContainSubstring(`admission webhook "deny.example.com" denied the request: ` + why))
			})
			allow()
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(m.Finalizers).To(ContainElement(clusterv1.MachineFinalizer))
				g.Expect(message(m, "Ready")).NotTo(ContainSubstring("ticket"))
			})
		})
	}
}

// TestADeniedDeletionIsNone: a webhook that does not find what it looks for may answer so, and that code is also the API server's for an
// object that does not exist. The Machine keeps its finalizer, and says why.
func TestADeniedDeletionIsNone(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]metav1.Status{
		"by its code alone": {Message: "no ticket", Code: http.StatusNotFound},
		"by its reason":     {Message: "no ticket", Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			f.createOwned()
			allow := core.Deny(t, coretest.Object(f.infra.GetKind(), f.namespace, "probe"), admissionv1.Delete, answer)
			f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
			f.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(message(m, "Deleting")).To(ContainSubstring("cannot be deleted: a webhook denies it"))
			})
			f.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(f.infra), f.infra)).To(Succeed())
			allow()
			f.Eventually(func(g Gomega) {
				g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(f.machine), f.machine)).To(MatchError(apierrors.IsNotFound, "gone"))
				g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(f.infra), f.infra)).To(MatchError(apierrors.IsNotFound, "gone"))
			}).WithTimeout(timeout).Should(Succeed())
		})
	}
}

// TestADeniedOwnershipIsNoAbsence: with the same code. An object that is there is neither reported as missing nor as deleted, and it is
// owned once that is allowed.
func TestADeniedOwnershipIsNoAbsence(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createObjects()
	allow := core.Deny(t, coretest.Object(f.infra.GetKind(), f.namespace, "probe"), admissionv1.Update,
		metav1.Status{Message: "no ticket", Code: http.StatusNotFound})
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("Unknown/InternalError"))
		g.Expect(message(m, "InfrastructureReady")).To(ContainSubstring("denied the request: no ticket"))
	})
	allow()
	f.Eventually(func() bool { f.refresh(f.infra); return metav1.IsControlledBy(f.infra, f.machine) }).WithTimeout(timeout).Should(BeTrue())
}
