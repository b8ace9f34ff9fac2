package inframachine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestHandOver: an object is not released before its Machine, which is being deleted, knows what it finds its Node by; a core that never
// copies that delays it for a while only.
func TestHandOver(t *testing.T) {
	began := time.Unix(1000, 0)
	host := []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalDNS, Address: "ip-10-0-0-4.ec2.internal"}}
	for name, test := range map[string]struct {
		providerID   string // that the Machine knows
		known, given []clusterv1.MachineAddress
		stays        bool
		after        time.Duration
		released     bool
	}{
		"neither is known":                  {given: host},
		"the addresses are not known":       {providerID: "p", given: host},
		"the provider ID is not known":      {known: host, given: host},
		"both are known":                    {providerID: "p", known: host, given: host, released: true},
		"there are no addresses":            {providerID: "p", released: true},
		"nothing takes them over":           {given: host, after: handOverGrace, released: true},
		"the Machine is not deleted itself": {stays: true, given: host, released: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newTestScope(
				&testMachine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: began}}},
				began.Add(test.after),
				testWriter{},
			)
			s.handle.ProviderID, s.Object.Status.Addresses = "p", test.given
			s.owner = &clusterv1.Machine{}
			if !test.stays {
				s.owner.DeletionTimestamp = &metav1.Time{Time: began}
			}
			s.owner.Spec.ProviderID, s.owner.Status.Addresses = test.providerID, test.known
			out := new(Reconciler[*testMachine]).handOver(t.Context(), s)
			g.Expect(out.Finished()).To(Equal(test.released))
		})
	}
	g := NewWithT(t)
	before := &clusterv1.Machine{}
	before.DeletionTimestamp = &metav1.Time{Time: began}
	after := before.DeepCopy()
	after.Status.Addresses = host
	g.Expect(machineChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).
		To(BeTrue(), "it is woken when they are taken over")
}
