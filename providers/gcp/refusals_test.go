package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/clouds/simulator"
)

// warnings are the messages of the Warning events in the namespace of the test.
func (f *fixture) warnings() (messages []string) {
	events := &corev1.EventList{}
	f.Expect(c.List(f.Ctx, events, client.InNamespace(f.Namespace))).To(Succeed())
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// A deletion that Compute Engine accepts and then fails is reported in its words, and is not asked for every few seconds.
func TestReconcileDelete_DeletionFailsLate_IsReported(t *testing.T) {
	f := newFixture(t)
	f.fault(simulator.Fault{Action: "instances.delete", Count: 2, LaunchFailure: &simulator.Failure{
		Code: "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", Message: "The instance is used by 'projects/p/global/x'"}})
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.Expect(c.Delete(f.Ctx, m)).To(Succeed())
	f.Eventually(f.Ready(m)).Should(And(ContainSubstring("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"),
		ContainSubstring("is used by 'projects/p/global/x'")))
	f.deleted(m)
	f.Expect(f.calls()["instances.delete"]).To(Equal(3), "two that have failed, and one that has not")
}

// A machine type that no zone has is a mistake in the spec; a fallback type that cannot have what the spec asks for is named in an event.
func TestLaunch_RefusedMachineType_IsReported(t *testing.T) {
	f := newFixture(t)
	wrong := f.machine("wrong", func(s *infrav1.GCPMachineSpec) { s.MachineType = "e2-standrad-2" })
	f.Eventually(f.Ready(wrong)).Should(And(HavePrefix("False InvalidConfiguration"),
		ContainSubstring("e2-standrad-2 exists in no zone of spec.zones")))
	f.deleted(wrong)

	f.fault(simulator.Fault{Action: "instances.insert", Parameters: map[string]string{"machineType": "n2-standard-4"},
		LaunchFailure: &simulator.Failure{Code: "ZONE_RESOURCE_POOL_EXHAUSTED"}})
	m := f.machine("falls-back", func(s *infrav1.GCPMachineSpec) {
		s.MachineType, s.FallbackMachineTypes = "n2-standard-4", []string{"t2a-standard-2", "n4-standrad-2", "g2-standard-4"}
	})
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.Expect(m.Status.InstanceType).To(Equal("g2-standard-4"), "a type that does not migrate is a fallback like any other")
	f.Eventually(f.warnings).Should(And(
		ContainElement(And(ContainSubstring("architecture"), ContainSubstring("t2a-standard-2"))),
		ContainElement(And(ContainSubstring("exists in no zone"), ContainSubstring("n4-standrad-2")))))
	f.deleted(m)
}

// The credentials of an identity are named as IAM prints them.
func TestIdentity_NamesOfIAM_AreAccepted(t *testing.T) {
	g := NewWithT(t)
	const provider = "projects/123/locations/global/workloadIdentityPools/pool/providers/cluster"
	for _, audience := range []string{"//iam.googleapis.com/" + provider, "https://iam.googleapis.com/" + provider, provider} {
		i := &infrav1.GCPIdentity{ObjectMeta: metav1.ObjectMeta{GenerateName: "i-"}, Spec: infrav1.GCPIdentitySpec{
			IdentitySpec:     driverv1.IdentitySpec{},
			WorkloadIdentity: &infrav1.WorkloadIdentity{Audience: audience, TokenFile: "/var/run/secrets/token"},
			Impersonate: &infrav1.ImpersonatedServiceAccount{Email: "projects/-/serviceAccounts/a@p.iam.gserviceaccount.com",
				Delegates: []string{"projects/p/serviceAccounts/b@p.iam.gserviceaccount.com"}},
		}}
		g.Expect(c.Create(t.Context(), i, client.DryRunAll)).To(Succeed(), audience)
		g.Expect(i.Spec.WorkloadIdentity.Provider()).To(Equal("//iam.googleapis.com/" + provider))
		g.Expect(i.Spec.Impersonate.Address()).To(Equal("a@p.iam.gserviceaccount.com"))
		g.Expect(i.Spec.Impersonate.DelegateAddresses()).To(Equal([]string{"b@p.iam.gserviceaccount.com"}))
	}
}
