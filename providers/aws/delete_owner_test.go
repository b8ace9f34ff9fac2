package main

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// launchedUnrecorded makes an instance of which neither AWSMachine nor Machine know the provider ID, and asks for the
// deletion of both. The clock is an hour behind the API server's, so that the wait for the Machine does not end on its own.
func launchedUnrecorded(t *testing.T) (*fixture, *clusterv1.Machine) {
	t.Helper()
	f := newFixture(t, simulator.Options{})
	f.clock.step(-time.Hour)
	f.intercept.Patch = patchFault(recordsProviderID, func() error { return errors.New("the process is about to die") })
	f.start()
	owner := &clusterv1.Machine{}
	owner.Namespace, owner.Name = f.namespace, f.machine("m").Name
	f.Eventually(f.live).Should(Equal(1))
	f.stop()
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
	owner.Finalizers = []string{clusterv1.MachineFinalizer}
	f.Expect(f.client.Update(f.ctx, owner)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, owner)).To(Succeed())
	f.delete("m")
	f.intercept.Patch = nil
	f.start()
	t.Cleanup(func() {
		owner.Finalizers = nil
		_ = f.client.Patch(f.ctx, owner, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	return f, owner
}

// An instance that is found by its token only when it is deleted has had time to become a Node. The Machine finds that by
// the provider ID, so the object does not go before the Machine has it.
func TestDeletionHandsTheProviderIDOver(t *testing.T) {
	f, owner := launchedUnrecorded(t)
	f.Eventually(f.live).Should(BeZero(), "the instance is ended meanwhile")
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForOwnerMachine"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Spec.ProviderID).NotTo(BeEmpty())

	before := owner.DeepCopy()
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(owner), before)).To(Succeed())
	owner = before.DeepCopy()
	owner.Spec.ProviderID = m.Spec.ProviderID
	f.Expect(f.client.Patch(f.ctx, owner, client.MergeFrom(before))).To(Succeed())
	before = owner.DeepCopy()
	for _, address := range m.Status.Addresses {
		owner.Status.Addresses = append(owner.Status.Addresses, clusterv1.MachineAddress{
			Type: clusterv1.MachineAddressType(address.Type), Address: address.Address,
		})
	}
	f.Expect(f.client.Status().Patch(f.ctx, owner, client.MergeFrom(before))).To(Succeed())
	f.Eventually(f.gone("m")).Should(BeTrue())
}

// A core that does not take it over delays the deletion and does not stop it.
func TestDeletionDoesNotWaitForEverForTheMachine(t *testing.T) {
	f, _ := launchedUnrecorded(t)
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForOwnerMachine"))
	f.clock.step(time.Hour + time.Minute)
	f.touch("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
}

// A launch that is retried slowly is no reason to let an instance run on that is to be ended.
func TestADeletionDoesNotWaitOutTheBackoffOfALaunch(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	var deleting atomic.Bool
	f.backoff = func(driver.Class, int) time.Duration {
		if deleting.Load() {
			return 50 * time.Millisecond
		}
		return time.Hour
	}
	f.options.InventorySlow = time.Hour
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Cut: simapi.CutAfter})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	deleting.Store(true)
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}
