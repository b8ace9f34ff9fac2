package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/testenv/machines"
)

// patchFault makes patches of the AWSMachine fail whose content matches.
func patchFault(
	matches func(patch string) bool,
	err func() error,
) func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
	return func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		data, dataErr := patch.Data(obj)
		if dataErr != nil {
			return dataErr
		}
		if matches(string(data)) {
			if err := err(); err != nil {
				return err
			}
		}
		return c.Patch(ctx, obj, patch, opts...)
	}
}

func recordsProviderID(patch string) bool { return strings.Contains(patch, `"providerID"`) }

func TestMCMAWS54AnswerLostAfterTheEffect(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Count: 1, Cut: simapi.CutAfter})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(1))
}

// A crash is a new start of the provider with nothing in memory.
func TestCAPA5794Crashes(t *testing.T) {
	for _, test := range []struct {
		name string
		// crash brings the provider to the point and stops it there.
		crash func(f *fixture)
	}{
		{"after the record was written and before the call", func(f *fixture) {
			f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", HoldBefore: true})
			f.start()
			f.machine("m")
			f.Eventually(f.holding("hold")).Should(Equal(1))
		}},
		{"after the effect and before the answer", func(f *fixture) {
			f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", HoldAfter: true})
			f.start()
			f.machine("m")
			f.Eventually(f.holding("hold")).Should(Equal(1))
		}},
		{"after the answer and before the provider ID was recorded", func(f *fixture) {
			var tried atomic.Int32
			f.intercept.Patch = patchFault(recordsProviderID, func() error {
				tried.Add(1)
				return errors.New("the process is about to die")
			})
			f.start()
			f.machine("m")
			f.Eventually(tried.Load).Should(BeNumerically(">", 0))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{Delays: simapi.Delays{Consistency: 300 * time.Millisecond}})
			test.crash(f)
			f.stop()
			m, err := f.get("m")
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(m.Annotations).To(HaveKey(inframachine.LaunchAnnotation))
			f.Expect(m.Spec.ProviderID).To(BeEmpty())

			f.sim.ClearFaults()
			f.intercept.Patch = nil
			f.start()
			f.becomesReady("m")
			f.Expect(f.instances()).To(HaveLen(1), "exactly one instance")
		})
	}
}

// A process that finds a launch without an answer looks for its instance before it repeats the call: tokens are not known everywhere.
func TestCAPA1351TheFirstListComesBeforeARepeatedLaunch(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", HoldAfter: true})
	f.start()
	f.machine("m")
	f.Eventually(f.holding("hold")).Should(Equal(1))
	f.stop()
	f.sim.ClearFaults()
	f.sim.AddFault(simapi.Fault{ID: "list", Action: "DescribeInstances", HoldBefore: true})
	f.start()
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForLaunchOutcome"))
	f.sim.RemoveFault("list")
	f.becomesReady("m")
	f.Expect(f.calls("RunInstances")).To(Equal(1))
}

// A call may take longer than the grace; the instance that it makes is as new as any.
func TestSlowLaunchIsNotTakenForVanished(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Consistency: time.Second}})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", HoldBefore: true})
	f.start()
	f.machine("m")
	f.Eventually(f.holding("hold")).Should(Equal(1))
	f.clock.step(10 * time.Minute)
	f.sim.ClearFaults()
	f.becomesReady("m")
}

func (f *fixture) holding(id string) func() int {
	return func() int {
		for _, fault := range f.sim.Faults() {
			if fault.ID == id {
				return fault.Holding
			}
		}
		return -1
	}
}

func TestCrashAndNewBootstrapData(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Consistency: 300 * time.Millisecond}})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", HoldAfter: true})
	f.start()
	f.machine("m")
	f.Eventually(f.holding("hold")).Should(Equal(1))
	f.stop()
	f.sim.ClearFaults()
	// The bootstrap provider has renewed its token meanwhile: EC2 answers IdempotentParameterMismatch.
	f.renewSecret("m")
	f.start()
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(1))
}

func TestMovedToAnotherManagementCluster(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", HoldAfter: true})
	f.start()
	f.machine("m")
	f.Eventually(f.holding("hold")).Should(Equal(1))
	f.stop()
	f.sim.ClearFaults()
	// clusterctl move recreates the object: annotations stay, UID and status do not.
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	moved := &infrav1.AWSMachine{ObjectMeta: *m.ObjectMeta.DeepCopy(), Spec: m.Spec}
	moved.UID, moved.ResourceVersion = "", ""
	base := m.DeepCopy()
	m.Finalizers = nil
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
	f.Expect(machines.WithoutCore(f.client).Delete(f.ctx, m)).To(Succeed())
	f.Expect(f.client.Create(f.ctx, moved)).To(Succeed())
	f.start()
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(1))
}

func TestCAPA6131ConflictStorm(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	var left atomic.Int32
	left.Store(8)
	conflict := func() error {
		if left.Add(-1) < 0 {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{Resource: "awsmachines"}, "m", errors.New("another writer was faster"))
	}
	f.intercept.Patch = patchFault(func(string) bool { return left.Load()%2 == 0 || left.Load() > 4 }, conflict)
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(1))
	f.Expect(left.Load()).To(BeNumerically("<=", 4), "there were conflicts")
}
