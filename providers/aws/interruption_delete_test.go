package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

const warning = "EC2 Spot Instance Interruption Warning"

// owner returns the Machine of an AWSMachine.
func (f *fixture) owner(name string) *clusterv1.Machine {
	f.t.Helper()
	m := &clusterv1.Machine{}
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, m)).To(Succeed())
	return m
}

// patchOwner changes the Machine of an AWSMachine.
func (f *fixture) patchOwner(name string, change func(*clusterv1.Machine)) {
	f.t.Helper()
	m := f.owner(name)
	base := m.DeepCopy()
	change(m)
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
}

// spotOfSet makes a Machine of a MachineSet, with the finalizer that the core adds, and returns its instance.
func (f *fixture) spotOfSet(name string) string {
	f.t.Helper()
	f.cluster(true)
	f.machineOfSet("set", name, spot)
	f.patchOwner(name, func(m *clusterv1.Machine) { m.Finalizers = []string{clusterv1.MachineFinalizer} })
	return f.becomesReady(name).Status.InstanceID
}

func (f *fixture) ownerIsDeleted(name string) func() bool {
	return func() bool { return !f.owner(name).DeletionTimestamp.IsZero() }
}

// The core drains the Node of a Machine that is deleted, and its MachineSet creates another when it is gone. Others are only reported: one
// that no MachineSet controls, and one whose object names an instance that is not its own.
func TestAnInterruptedMachineIsDeleted(t *testing.T) {
	f := newFixtureAlone(t, simulator.Options{})
	f.withQueue()
	f.start()
	taken := f.spotOfSet("taken")
	likely := f.spotOfSet("likely")
	f.machine("alone", spot)
	alone := f.becomesReady("alone").Status.InstanceID
	takenObject, err := f.get("taken")
	f.Expect(err).NotTo(HaveOccurred())
	f.secret("claims")
	f.awsMachine("claims", f.ownerMachine("claims", "claims", true, func(m *clusterv1.Machine) {
		m.OwnerReferences = f.owner("taken").OwnerReferences
	}), spot, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = takenObject.Spec.ProviderID })
	f.Eventually(f.ready("claims")).Should(Equal("False ForeignInstance"))

	f.announce("EC2 Instance Rebalance Recommendation", likely)
	f.announce(warning, alone)
	f.announce(warning, taken)
	f.Eventually(f.ownerIsDeleted("taken")).Should(BeTrue())
	f.Eventually(f.ready("taken")).Should(Equal("False InterruptionImminent"))
	f.Eventually(func() string { f.ready("taken")(); return f.messages["taken"] }).Should(ContainSubstring("Machine was deleted"))
	f.Eventually(f.condition("likely", driverv1.InstanceEventScheduledCondition)).Should(Equal("True RebalanceRecommended"))
	f.Eventually(f.ready("alone")).Should(Equal("False InterruptionImminent"))
	f.Eventually(func() string { f.ready("alone")(); return f.messages["alone"] }).Should(ContainSubstring("no MachineSet controls it"))
	for _, name := range []string{"likely", "alone", "claims"} {
		f.Expect(f.ownerIsDeleted(name)()).To(BeFalse(), name)
	}
	f.Expect(f.calls("TerminateInstances")).To(BeZero(), "the instance is ended when the core has drained it")
}

// A message stays in the queue until the Machine is deleted: a process that ends before loses nothing. What refuses the deletion is
// reported.
func TestADeletionOfAnInterruptedMachineThatIsRefused(t *testing.T) {
	f := newFixtureAlone(t, simulator.Options{})
	f.withQueue()
	var refuse atomic.Bool
	refuse.Store(true)
	f.intercept.Delete = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
		if _, ok := obj.(*clusterv1.Machine); ok && refuse.Load() {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, obj.GetName(), errors.New("frozen by policy"))
		}
		return c.Delete(ctx, obj, opts...)
	}
	f.start()
	id := f.spotOfSet("m")
	f.announce(warning, id)
	f.Eventually(func() string {
		f.condition("m", driverv1.InstanceEventScheduledCondition)()
		return f.messages["m"]
	}).Should(And(ContainSubstring("cannot be deleted"), ContainSubstring("frozen by policy")))
	f.Expect(f.ownerIsDeleted("m")()).To(BeFalse())
	f.Expect(f.queue.Left()).To(Equal(1))

	f.stop() // Another process receives it again.
	refuse.Store(false)
	f.start()
	f.queue.Redeliver()
	f.Eventually(f.ownerIsDeleted("m")).Should(BeTrue())
	f.Eventually(func() int { f.queue.Redeliver(); return f.queue.Left() }).Should(BeZero())
}

// Who has paused a Machine works on it. It is deleted if that ends in time.
func TestAPausedMachineIsNotDeletedWhenItIsInterrupted(t *testing.T) {
	f := newFixtureAlone(t, simulator.Options{})
	f.withQueue()
	f.start()
	id := f.spotOfSet("m")
	f.patchOwner("m", func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
	f.announce(warning, id)
	f.Eventually(func() string { f.ready("m")(); return f.messages["m"] }).Should(ContainSubstring("it is paused"))
	f.Expect(f.ownerIsDeleted("m")()).To(BeFalse())
	f.patchOwner("m", func(m *clusterv1.Machine) { m.Annotations = nil })
	f.clock.step(20 * time.Second)
	f.touch("m")
	f.Eventually(f.ownerIsDeleted("m")).Should(BeTrue())
}
