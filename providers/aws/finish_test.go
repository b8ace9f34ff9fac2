package main

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

const modifyInterface = "ModifyNetworkInterfaceAttribute"

// router is a machine that forwards the traffic of others.
func router(m *infrav1.AWSMachine) { m.Spec.SourceDestCheck = new(false) }

// checked returns whether EC2 checks sources and destinations of each network interface of the account.
func (f *fixture) checked() []bool {
	f.t.Helper()
	api, err := f.clients(f.ctx, testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	out, err := api.DescribeNetworkInterfaces(f.ctx, &ec2.DescribeNetworkInterfacesInput{})
	f.Expect(err).NotTo(HaveOccurred())
	var checks []bool
	for _, n := range out.NetworkInterfaces {
		checks = append(checks, *n.SourceDestCheck)
	}
	return checks
}

func TestSourceDestCheck(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m", router)
	f.machine("plain")
	f.becomesReady("plain")
	f.becomesReady("m")
	f.Expect(f.checked()).To(ConsistOf(true, false))
	f.Expect(f.calls(modifyInterface)).To(Equal(1))
	f.Expect(f.condition("m", driverv1.InstanceConfiguredCondition)()).To(Equal("none"), "there was nothing to report")

	f.stop()
	f.start() // Another process knows nothing of the call.
	lists := f.calls("DescribeInstances")
	f.touch("m")
	f.Eventually(f.listsSince(lists)).Should(BeNumerically(">=", 2))
	f.touch("m")
	f.Expect(f.calls(modifyInterface)).To(Equal(1), "what is done costs no call")

	api, err := f.clients(f.ctx, testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	on := slices.Index(f.checked(), false)
	_, err = api.ModifyNetworkInterfaceAttribute(f.ctx, &ec2.ModifyNetworkInterfaceAttributeInput{
		NetworkInterfaceId: aws.String(f.sim.NetworkInterfaces()[on].ID), SourceDestCheck: &types.AttributeBooleanValue{Value: new(true)},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.Eventually(f.checked).Should(ConsistOf(true, false), "what a user has switched on is switched off again")
	f.Expect(f.ready("m")()).To(Equal("True InstanceRunning"))
}

// The machine runs, and is not ready before the cloud has granted all that it is to be.
func TestSourceDestCheckRefused(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	gate := f.gateBackoff()
	f.sim.AddFault(simapi.Fault{ID: "denied", Action: modifyInterface,
		Error: &simapi.APIError{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation."}})
	f.start()
	f.machine("m", router)
	f.Eventually(f.ready("m")).Should(Equal("False InstanceNotConfigured"))
	f.Expect(f.messages["m"]).To(And(ContainSubstring("sourceDestCheck is not false on eni-"),
		ContainSubstring("UnauthorizedOperation: You are not authorized to perform this operation")))
	f.Expect(f.condition("m", driverv1.InstanceConfiguredCondition)()).To(Equal("False Unauthorized"))
	f.Expect(f.condition("m", driverv1.InstanceProvisionedCondition)()).To(Equal("True InstanceRunning"), "its Node must be drained")
	f.Eventually(f.events).Should(ContainElement("InstanceNotConfigured"))
	f.Expect(f.calls(modifyInterface)).To(Equal(1), "whatever wakes the object does not repeat it")

	f.sim.ClearFaults()
	gate.open(f, "m")
	f.becomesReady("m")
	f.Expect(f.condition("m", driverv1.InstanceConfiguredCondition)()).To(Equal("True InstanceConfigured"))
	f.Expect(f.checked()).To(Equal([]bool{false}))
}

// A process that dies with the call under way has its successor repeat it, and a call that hangs holds one worker for its time at most.
func TestSourceDestCheckWhileTheCallHangs(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.CloudTimeout = time.Minute
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: modifyInterface, HoldBefore: true})
	f.start()
	f.machine("m", router)
	f.Eventually(f.holding("hold")).Should(Equal(1))
	f.machine("other")
	f.becomesReady("other")
	f.Expect(f.ready("m")()).NotTo(HavePrefix("True"))
	f.stop()
	f.sim.ClearFaults()
	f.start()
	f.becomesReady("m")
	f.Expect(f.checked()).To(ContainElement(false))
}

// Anyone who may write AWSMachines may name any instance: nothing is changed that is not marked as the object's.
func TestSourceDestCheckOfAForeignInstance(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	id, providerID := f.foreign()
	f.tag(id, map[string]string{instance.TagOwnerUID: "u", instance.TagMachine: "other/m"})
	f.start()
	f.awsMachine("thief", nil, router, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = providerID })
	f.Eventually(f.ready("thief")).Should(Equal("False ForeignInstance"))
	f.Expect(f.calls(modifyInterface)).To(BeZero())
	f.Expect(f.checked()).To(Equal([]bool{true}))
}
