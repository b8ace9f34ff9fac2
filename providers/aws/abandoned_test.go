package main

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/testenv/machines"
)

// launching makes m and holds its launch after the effect, so that the answer is still on its way.
func (f *fixture) launching() *infrav1.AWSMachine {
	f.t.Helper()
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", Count: 1, HoldAfter: true})
	f.start()
	f.machine("m")
	f.Eventually(f.holding("hold")).Should(Equal(1))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	return m
}

// expunge deletes m, and removes its finalizer manually.
func (f *fixture) expunge(m *infrav1.AWSMachine) {
	f.t.Helper()
	base := m.DeepCopy()
	m.Finalizers = nil
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
	f.Expect(machines.WithoutCore(f.client).Delete(f.ctx, m)).To(Succeed())
	f.Eventually(f.gone(m.Name)).Should(BeTrue())
}

func TestAnInstanceWhoseObjectWentDuringTheLaunchIsEnded(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.expunge(f.launching())
	f.sim.ClearFaults()
	f.Eventually(f.live).Should(BeZero(), "nothing else would ever terminate it")
	f.Eventually(f.events).Should(ContainElement("InstanceAbandoned"))
}

// The answer of a launch was recorded in whatever object had the name by then.
func TestAnObjectIsNotGivenTheInstanceOfTheOneBeforeIt(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	old := f.launching()
	f.expunge(old)
	recreated := f.awsMachine("m", nil)
	f.sim.ClearFaults()
	f.Eventually(f.live).Should(BeZero())
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.UID).To(Equal(recreated.UID))
	f.Expect(m.Spec.ProviderID).To(BeEmpty())
	f.Expect(m.Annotations).To(BeEmpty())
}

// clusterctl move deletes the object here and keeps the instance for the one that it has created elsewhere. Its Cluster is paused.
func TestAnInstanceWhoseObjectIsMovedDuringTheLaunchStays(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	m := f.launching()
	f.pause(true)
	f.expunge(m)
	f.sim.ClearFaults()
	f.Eventually(f.events).Should(ContainElement("InstanceAbandoned"))
	f.Expect(f.live()).To(Equal(1))
	f.Expect(f.calls("TerminateInstances")).To(BeZero())
}

// A reader of the record of a call relies on it to take effect within its time or never.
func TestALaunchWhoseRecordWasWrittenLateIsNotMade(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	late := make(chan struct{}, 1)
	late <- struct{}{}
	f.intercept.Patch = func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch,
		opts ...client.PatchOption) error {
		data, err := patch.Data(obj)
		if err != nil {
			return err
		}
		err = c.Patch(ctx, obj, patch, opts...)
		select {
		case <-late: // the API server has written the record, and answers when another process has let the object go
			if strings.Contains(string(data), "lastCall") {
				f.clock.step(f.options.VisibilityGrace * 2)
				m, err := f.get("m")
				if err != nil {
					return err
				}
				f.expunge(m)
			}
		default:
		}
		return err
	}
	f.start()
	f.machine("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Consistently(func() int { return f.calls("RunInstances") }, "300ms").Should(BeZero())
}
