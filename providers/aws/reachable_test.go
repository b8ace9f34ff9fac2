package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// expire has the credentials expire for everything.
func (f *fixture) expire() {
	f.sim.AddFault(
		simapi.Fault{
			Action: "DescribeInstances",
			Error:  &simapi.APIError{Code: "AuthFailure", Message: "AWS was not able to validate the provided access credentials"},
		},
	)
}

func (f *fixture) reachable(name string) func() string {
	return f.condition(name, driverv1.CloudReachableCondition)
}

// Machines do not stay as they were for ever without a report when they are not listed.
func TestExpiredCredentialsAreReportedOfEachMachine(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.UnreachableAfter = time.Second
	var patches atomic.Int64
	f.intercept = interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
			o ...client.SubResourcePatchOption) error {
			patches.Add(1)
			return c.SubResource(sub).Patch(ctx, obj, patch, o...)
		},
	}
	f.start()
	names := []string{"a", "b", "c"}
	for _, name := range names {
		f.machine(name)
		f.becomesReady(name)
	}
	patches.Store(0)
	f.expire()
	for _, name := range names {
		f.Eventually(f.reachable(name)).Should(Equal("False Unauthorized"))
		f.Expect(f.messages[name]).To(And(ContainSubstring("not able to validate"), ContainSubstring("since 20")))
		f.Expect(f.ready(name)()).To(Equal("True InstanceRunning"), "or all of them would be replaced")
	}
	f.Eventually(f.unreachableEvents).Should(Equal(1), "one for all")

	// A new process that has never listed keeps what was reported, and adds nothing.
	f.reachable("a")()
	reported := f.messages["a"]
	f.stop()
	f.start()
	lists := f.listsSince(len(f.sim.Calls()))
	f.Eventually(lists).Should(BeNumerically(">=", 8))
	f.Expect(f.reachable("a")()).To(Equal("False Unauthorized"))
	f.Expect(f.messages["a"]).To(Equal(reported))

	f.sim.ClearFaults()
	for _, name := range names {
		f.Eventually(f.reachable(name)).Should(Equal("True InstancesListed"))
	}
	f.Expect(patches.Load()).To(Equal(int64(2*len(names))), "one write for each machine when it begins, one when it ends")
	f.Expect(f.unreachableEvents()).To(Equal(1))
}

// A provider that starts with expired credentials does not know when instances were listed last.
func TestCredentialsThatHaveExpiredBeforeTheStart(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.UnreachableAfter = time.Second
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	f.stop()
	meta.RemoveStatusCondition(&m.Status.Conditions, driverv1.CloudReachableCondition)
	f.Expect(f.client.Status().Update(f.ctx, m)).To(Succeed())
	f.expire()
	f.start()
	f.Eventually(f.reachable("m")).Should(Equal("False Unauthorized"))
	f.Expect(f.messages["m"]).To(ContainSubstring("since this provider began to list them at 20"))
	f.Expect(f.ready("m")()).To(Equal("True InstanceRunning"))
}

func (f *fixture) unreachableEvents() int {
	events := &eventsv1.EventList{}
	f.Expect(f.client.List(f.ctx, events, client.InNamespace(f.namespace))).To(Succeed())
	n := 0
	for i := range events.Items {
		if events.Items[i].Reason == "CloudUnreachable" && strings.HasPrefix(events.Items[i].Note, "All machines of ") {
			n++
		}
	}
	return n
}
