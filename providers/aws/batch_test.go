package main

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// machines makes n machines and waits until all of them run.
func (f *fixture) machines(n int) []string {
	f.t.Helper()
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("m%02d", i))
		f.machine(names[i])
	}
	for _, name := range names {
		f.becomesReady(name)
	}
	return names
}

// deleteAtOnce has the deletions of all of them reconciled together.
func (f *fixture) deleteAtOnce(names ...string) {
	f.t.Helper()
	f.pause(true)
	for _, name := range names {
		f.Eventually(f.condition(name, driverv1.PausedCondition)).Should(Equal("True Paused"))
		f.delete(name)
	}
	f.pause(false)
}

// looks returns the numbers of instances that were read together, call by call.
func (f *fixture) looks() []int {
	var sizes []int
	for _, c := range f.sim.Calls() {
		if n := len(c.Parameters); c.Action == "DescribeInstances" && c.Parameters["Filter.1.Name"] == "instance-id" {
			sizes = append(sizes, n-2) // The name of the filter and the size of a page are parameters too.
		}
	}
	return sizes
}

// A Machine's share in the calls of deletions falls with the number of Machines that are deleted together.
func TestDeletionsAreBatched(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{ShuttingDown: time.Second}})
	f.start()
	names := f.machines(50)
	f.deleteAtOnce(names...)
	for _, name := range names {
		f.Eventually(f.gone(name)).Should(BeTrue())
	}
	f.Expect(f.live()).To(BeZero())
	// The slower the test machine, the more batches; without batches there is a call for each Machine at least.
	for _, action := range []string{"TerminateInstances", "DescribeVolumes", "DescribeNetworkInterfaces"} {
		f.Expect(f.calls(action)).To(BeNumerically("<=", len(names)/2), action)
	}
	f.Expect(len(f.looks())).To(BeNumerically("<=", len(names)/2), "the marks are looked at once for a batch")
}

// protected makes a machine that EC2 does not let end.
func (f *fixture) protected(name string) *infrav1.AWSMachine {
	f.t.Helper()
	out, err := f.ec2().RunInstances(f.ctx, &ec2.RunInstancesInput{
		ImageId: aws.String(testImage), InstanceType: "m5.large", SubnetId: aws.String(subnetA),
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), DisableApiTermination: aws.Bool(true),
	})
	f.Expect(err).NotTo(HaveOccurred())
	id := *out.Instances[0].InstanceId
	m := f.machine(name, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = "aws:///" + zoneA + "/" + id })
	f.mark(id, m)
	return f.becomesReady(name)
}

// One batch has what cannot be ended for three reasons, and each is reported for its own object only.
func TestKarpenterAWS2253ABatchWithInstancesThatCannotBeEnded(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.batch.Gather = 10 * time.Second // In which all of them ask, on a computer that is busy.
	f.start()
	protected := f.protected("protected")
	good := f.machines(4)
	f.machine("foreign")
	f.machine("vanished")
	foreign, vanished := f.becomesReady("foreign"), f.becomesReady("vanished")
	// The lists do not show it any more: only a look at the time of the call does.
	f.sim.AddFault(simapi.Fault{ID: "old", Action: "DescribeInstances", Parameters: map[string]string{"Filter.1.Name": "tag-key"},
		Error: &simapi.APIError{Code: "InternalError"}})
	f.Eventually(func() int { return f.sim.Faults()[0].Hits }).Should(BeNumerically(">=", 1), "no list from before is under way")
	_, err := f.ec2().DeleteTags(f.ctx, &ec2.DeleteTagsInput{
		Resources: []string{foreign.Status.InstanceID}, Tags: []types.Tag{{Key: aws.String(instance.TagMachine)}},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.sim.Vanish(vanished.Status.InstanceID)).To(Succeed())

	f.deleteAtOnce(append(good, "protected", "foreign", "vanished")...)
	f.Eventually(f.looks).Should(ContainElement(7), "one look at all")
	for _, name := range good {
		f.Eventually(f.ready(name)).Should(Equal("False TerminatingInstance"))
	}
	f.Eventually(f.ready("protected")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.messages["protected"]).To(ContainSubstring(protected.Status.InstanceID))
	f.Eventually(f.ready("foreign")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.messages["foreign"]).To(ContainSubstring("is not marked as this object's"))
	f.Eventually(f.ready("vanished")).Should(Equal("False InstanceNotVisible"))

	f.sim.RemoveFault("old")
	for _, name := range good {
		f.Eventually(f.gone(name)).Should(BeTrue())
	}
	f.Expect(f.alive(protected.Status.InstanceID)).To(BeTrue())
	f.Expect(f.alive(foreign.Status.InstanceID)).To(BeTrue())
	f.clock.step(2 * f.options.VisibilityGrace)
	f.touch("vanished")
	f.Eventually(f.gone("vanished")).Should(BeTrue())
}

// The calls of batches fail as those of single machines do: all machines wait, and none is forgotten.
func TestFailuresOfABatch(t *testing.T) {
	for name, test := range map[string]struct {
		fault simapi.Fault
		ready string
	}{
		"the look is throttled":      {simapi.Fault{Action: "DescribeInstances", Parameters: map[string]string{"Filter.1.Name": "instance-id"}, Error: &simapi.APIError{Code: "RequestLimitExceeded"}}, "False Throttled"},
		"the end is throttled":       {simapi.Fault{Action: "TerminateInstances", Error: &simapi.APIError{Code: "RequestLimitExceeded"}}, "False Throttled"},
		"the dependants are":         {simapi.Fault{Action: "DescribeVolumes", Error: &simapi.APIError{Code: "RequestLimitExceeded"}}, "False Throttled"},
		"nothing is allowed":         {simapi.Fault{Action: "TerminateInstances", Error: &simapi.APIError{Code: "UnauthorizedOperation"}}, "False Unauthorized"},
		"the call is lost":           {simapi.Fault{Action: "TerminateInstances", Cut: simapi.CutBefore}, "False CloudError"},
		"an unknown kind of refusal": {simapi.Fault{Action: "TerminateInstances", Error: &simapi.APIError{Code: "SomethingNew"}}, "False CloudError"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.start()
			names := f.machines(3)
			test.fault.ID = "fault"
			f.sim.AddFault(test.fault)
			f.deleteAtOnce(names...)
			for _, name := range names {
				f.Eventually(f.ready(name)).Should(Equal(test.ready))
			}
			f.sim.RemoveFault("fault")
			for _, name := range names {
				f.Eventually(f.gone(name)).Should(BeTrue())
			}
			f.Expect(f.live()).To(BeZero())
		})
	}
}

// The batch took effect and its answer was lost: the next look shows that.
func TestLostAnswerOfABatch(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{ShuttingDown: time.Second}})
	f.batch.Gather = 10 * time.Second // In which all of them ask, on a computer that is busy.
	f.start()
	names := f.machines(5)
	f.sim.AddFault(simapi.Fault{Action: "TerminateInstances", Count: 1, Cut: simapi.CutAfter})
	f.deleteAtOnce(names...)
	for _, name := range names {
		f.Eventually(f.gone(name)).Should(BeTrue())
	}
	f.Expect(f.live()).To(BeZero())
	f.Expect(f.calls("TerminateInstances")).To(Equal(1), "nothing is ended that is ending")
}

// A region that hangs delays its own deletions only, and they report it.
func TestAHangingRegionHoldsUpNoOther(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	const west = "us-west-2"
	catalog := simulator.DefaultCatalog(west)
	other := simulator.New(simulator.Options{Region: west, Catalog: catalog})
	endpoint := httptest.NewServer(other)
	t.Cleanup(func() { f.stop(); other.Close(); endpoint.Close() })
	f.endpoints = map[string]string{west: endpoint.URL}
	f.options.CloudTimeout = time.Minute
	f.start()
	names := f.machines(2)
	f.machine("west", func(m *infrav1.AWSMachine) { m.Spec.Region = west })
	f.becomesReady("west")
	f.sim.AddFault(simapi.Fault{ID: "hang", Action: "TerminateInstances", HoldBefore: true})
	f.deleteAtOnce(append(names, "west")...)
	f.Eventually(f.gone("west")).Should(BeTrue())
	for _, name := range names {
		f.Eventually(f.ready(name)).Should(Equal("False TerminatingInstance"))
		f.Expect(f.messages[name]).To(ContainSubstring("Waiting for the answer of the cloud"))
	}
	f.sim.RemoveFault("hang")
	for _, name := range names {
		f.Eventually(f.gone(name)).Should(BeTrue())
	}
}

// A request is in memory only: a process that dies with it leaves it to the next one.
func TestCrashesAroundABatch(t *testing.T) {
	for name, crash := range map[string]func(f *fixture){
		"while it is gathered": func(f *fixture) {
			f.Eventually(f.listsSince(len(f.sim.Calls()))).Should(BeNumerically(">=", 2))
			f.Expect(f.looks()).To(BeEmpty())
		},
		"between look and call": func(f *fixture) {
			f.sim.AddFault(simapi.Fault{ID: "hold", Action: "TerminateInstances", HoldBefore: true})
			f.Eventually(f.holding("hold")).Should(Equal(1))
		},
		"after the effect and before the answer": func(f *fixture) {
			f.sim.AddFault(simapi.Fault{ID: "hold", Action: "TerminateInstances", HoldAfter: true})
			f.Eventually(f.holding("hold")).Should(Equal(1))
		},
		"before the answer about dependants": func(f *fixture) {
			f.sim.AddFault(simapi.Fault{ID: "hold", Action: "DescribeNetworkInterfaces", HoldAfter: true})
			f.Eventually(f.holding("hold")).Should(Equal(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.batch.Gather = 2 * time.Second
			if name == "while it is gathered" {
				f.batch.Gather = time.Hour
			}
			f.start()
			names := f.machines(3)
			f.deleteAtOnce(names...)
			crash(f)
			f.stop()
			f.sim.ClearFaults()
			f.batch.Gather = 0
			f.start()
			for _, name := range names {
				f.Eventually(f.gone(name)).Should(BeTrue())
			}
			f.Expect(f.live()).To(BeZero())
			f.Expect(f.instances()).To(HaveLen(3))
		})
	}
}

// Who pauses an object takes back what has not been sent for it.
func TestAPauseWithdrawsARequest(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.backoff = func(driver.Class, int) time.Duration { return time.Second }
	f.start()
	names := f.machines(2)
	f.sim.AddFault(simapi.Fault{ID: "throttle", Action: "TerminateInstances", Error: &simapi.APIError{Code: "RequestLimitExceeded"}})
	f.deleteAtOnce(names...)
	for _, name := range names {
		f.Eventually(f.ready(name)).Should(Equal("False Throttled"), "it waits with its scope")
	}
	kept, other := names[0], names[1]
	f.pauseObject(kept, true)
	f.Eventually(f.condition(kept, driverv1.PausedCondition)).Should(Equal("True Paused"))
	f.sim.RemoveFault("throttle")
	f.Eventually(f.gone(other)).Should(BeTrue())
	f.Expect(f.live()).To(Equal(1))
	f.pauseObject(kept, false)
	f.Eventually(f.gone(kept)).Should(BeTrue())
}
