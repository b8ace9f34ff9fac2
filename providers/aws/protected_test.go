package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

const modifyInstance = "ModifyInstanceAttribute"

func withProtection(m *infrav1.AWSMachine) { m.Spec.TerminationProtection = new(true) }

// What the spec has asked for is no obstacle to the deletion of the Machine; each protected instance is one call more.
func TestProtectionEndsWithTheMachine(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m", withProtection)
	f.machine("plain")
	f.becomesReady("m")
	f.becomesReady("plain")
	api, err := f.clients(f.ctx, testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	_, err = api.TerminateInstances(f.ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{m.Status.InstanceID}})
	f.Expect(err).To(MatchError(ContainSubstring("OperationNotPermitted")), "others cannot end it")
	f.deleteAtOnce("m", "plain")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Eventually(f.gone("plain")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
	f.Expect(f.calls(modifyInstance)).To(Equal(1))
}

// The protection of an instance whose spec asks for none was set by another user, and an instance without the mark has another owner.
func TestProtectionOfOthersStays(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.protected("by-hand")
	id, providerID := f.foreign()
	f.tag(id, map[string]string{instance.TagOwnerUID: "u", instance.TagMachine: "other/m"})
	f.awsMachine("thief", nil, withProtection, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = providerID })
	f.Eventually(f.ready("thief")).Should(Equal("False ForeignInstance"))
	f.deleteAtOnce("by-hand", "thief")
	f.Eventually(f.ready("by-hand")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.messages["by-hand"]).To(ContainSubstring("disableApiTermination"))
	f.Eventually(f.ready("thief")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.calls(modifyInstance)).To(BeZero())
	f.Expect(f.live()).To(Equal(2))
}

// The mark is read from the cloud itself: a list may be from before a user took it away.
func TestProtectionOfAnInstanceThatHasLostItsMark(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m", withProtection)
	m := f.becomesReady("m")
	f.sim.AddFault(simapi.Fault{Action: "DescribeInstances", Parameters: map[string]string{"Filter.1.Name": "tag-key"},
		Error: &simapi.APIError{Code: "InternalError"}})
	f.Eventually(func() int { return f.sim.Faults()[0].Hits }).Should(BeNumerically(">=", 1), "no list from before is under way")
	_, err := f.ec2().DeleteTags(f.ctx, &ec2.DeleteTagsInput{
		Resources: []string{m.Status.InstanceID}, Tags: []types.Tag{{Key: aws.String(instance.TagMachine)}},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.calls(modifyInstance)).To(BeZero())
}

// A refusal is reported in EC2's words and holds up no other deletion; a process that dies after the call repeats it.
func TestProtectionThatCannotBeLifted(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	gate := f.gateBackoff()
	f.sim.AddFault(simapi.Fault{Action: modifyInstance,
		Error: &simapi.APIError{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation."}})
	f.start()
	f.machine("m", withProtection)
	f.machine("plain")
	f.becomesReady("m")
	f.becomesReady("plain")
	f.deleteAtOnce("m", "plain")
	f.Eventually(f.gone("plain")).Should(BeTrue())
	f.Eventually(f.ready("m")).Should(Equal("False Unauthorized"))
	f.Expect(f.messages["m"]).To(ContainSubstring("ModifyInstanceAttribute: UnauthorizedOperation: You are not authorized"))

	f.sim.ClearFaults()
	f.sim.AddFault(simapi.Fault{Action: "TerminateInstances", Count: 1, Cut: simapi.CutBefore})
	gate.open(f, "m")
	f.Eventually(func() []simapi.Fault { return f.sim.Faults() }).Should(Or(BeEmpty(), ContainElement(HaveField("Hits", 1))))
	f.Expect(f.live()).To(Equal(1))
	f.stop()
	f.start()
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}
