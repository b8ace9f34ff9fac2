package main

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/interruption"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/calls/callstest"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/sqs"
)

func spot(m *infrav1.AWSMachine) { m.Spec.Spot = &infrav1.Spot{} }

// withQueue has the provider read an interruption queue.
func (f *fixture) withQueue() {
	f.t.Helper()
	f.queue = &sqs.Queue{}
	server := httptest.NewServer(f.queue)
	f.t.Cleanup(server.Close)
	f.queueURL = server.URL + "/000000000000/millwright"
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SQS": server.URL, "AWS_REGION": testRegion, "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "secret",
	} {
		f.t.Setenv(name, value)
	}
}

// announce sends what EventBridge sends of an instance.
func (f *fixture) announce(kind, id string) {
	f.queue.Send(
		fmt.Sprintf(`{"source":"aws.ec2","detail-type":%q,"region":%q,"time":%q,"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
			kind, testRegion, time.Now().UTC().Format(time.RFC3339), id),
		time.Now(),
	)
}

// A machine that is taken back within two minutes is not ready any more; one that is only likely to be stays so.
func TestInterruptionQueue(t *testing.T) {
	f := newFixtureAlone(t, simulator.Options{})
	f.withQueue()
	f.action = interruption.ActionReport
	f.start()
	f.cluster(true)
	for _, name := range []string{"taken", "likely", "spared"} {
		f.machineOfSet("set", name, spot)
	}
	id := f.becomesReady("taken").Status.InstanceID
	likely := f.becomesReady("likely").Status.InstanceID
	f.becomesReady("spared")
	f.announce("EC2 Instance Rebalance Recommendation", likely)
	f.announce("EC2 Spot Instance Interruption Warning", id)
	f.Eventually(f.ready("taken")).Should(Equal("False InterruptionImminent"))
	f.Expect(f.messages["taken"]).To(ContainSubstring("takes the instance back at"))
	f.Expect(f.condition("taken", driverv1.InstanceEventScheduledCondition)()).To(Equal("True InterruptionImminent"))
	f.Eventually(f.condition("likely", driverv1.InstanceEventScheduledCondition)).Should(Equal("True RebalanceRecommended"))
	f.Expect(f.ready("likely")()).To(Equal("True InstanceRunning"))
	f.Expect(f.condition("spared", driverv1.InstanceEventScheduledCondition)()).To(Equal("none"))
	f.Eventually(f.queue.Left).Should(BeZero())
	counted, err := callstest.Counted("aws", testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(counted).To(HaveKey("ReceiveMessage ok"), "calls of SQS are measured like those of EC2")
	f.Expect(f.calls("TerminateInstances")).To(BeZero(), "nothing is ended because of a message")
	f.Expect(f.owner("taken").DeletionTimestamp).To(BeNil(), "interruptions are only reported")

	f.stop() // What was announced outlives the process.
	f.start()
	f.Eventually(f.listsSince(f.calls("DescribeInstances"))).Should(BeNumerically(">=", 2))
	f.Expect(f.ready("taken")()).To(Equal("False InterruptionImminent"))
	f.Expect(f.sim.Interrupt(id)).To(Succeed())
	f.Eventually(f.ready("taken")).Should(Equal("False InstanceInterrupted"))
}

// An instance that is still there has not been taken back, and what is written about another instance does not count.
func TestNoticesThatDoNotCount(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.cluster(true)
	f.machineOfSet("set", "m", spot)
	m := f.becomesReady("m")
	put := func(providerID string) {
		f.patch("m", func(m *infrav1.AWSMachine) {
			f.Expect(inframachine.PutNotice(m, inframachine.Notice{Kind: inframachine.NoticeInterruption, ProviderID: providerID,
				At: f.clock.Now()})).
				To(BeTrue())
		})
	}
	put(m.Spec.ProviderID)
	f.Eventually(f.ready("m")).Should(Equal("False InterruptionImminent"))
	f.Expect(f.owner("m").DeletionTimestamp).To(BeNil(), "any user may have written the annotation")
	put("aws:///us-east-1a/i-other")
	f.becomesReady("m")
	put(m.Spec.ProviderID)
	f.Eventually(f.ready("m")).Should(Equal("False InterruptionImminent"))
	f.clock.step(16 * time.Minute)
	f.touch("m")
	f.becomesReady("m")
	f.Expect(f.condition("m", driverv1.InstanceEventScheduledCondition)()).To(Equal("False NoEventScheduled"))
}
