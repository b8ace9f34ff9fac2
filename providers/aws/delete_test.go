package main

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

func (f *fixture) delete(name string) {
	f.t.Helper()
	m := &infrav1.AWSMachine{}
	m.Namespace, m.Name = f.namespace, name
	f.Expect(f.client.Delete(f.ctx, m)).To(Succeed())
}

func (f *fixture) gone(name string) func() bool {
	return func() bool {
		_, err := f.get(name)
		return apierrors.IsNotFound(err)
	}
}

// live counts the instances that still cost money.
func (f *fixture) live() int {
	n := 0
	for _, i := range f.instances() {
		if i.Live() {
			n++
		}
	}
	return n
}

func (f *fixture) terminate(id string) {
	f.t.Helper()
	api, err := f.clients(f.ctx, testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	_, err = api.TerminateInstances(f.ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	f.Expect(err).NotTo(HaveOccurred())
}

func (f *fixture) renewSecret(name string) {
	f.t.Helper()
	secret := &corev1.Secret{}
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, secret)).To(Succeed())
	secret.Data["value"] = []byte("#cloud-config\n# renewed\n")
	f.Expect(f.client.Update(f.ctx, secret)).To(Succeed())
}

func TestDeleteWaitsForTheInstance(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{ShuttingDown: 2 * time.Second}})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False TerminatingInstance"))
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.instances()[0].State).To(Equal("terminated"))
	f.Expect(f.sim.Volumes()).To(BeEmpty())
	f.Expect(f.sim.NetworkInterfaces()).To(BeEmpty())
	f.Expect(f.calls("TerminateInstances")).To(Equal(1))
	f.Eventually(f.events).Should(ContainElements("InstanceTerminating", "InstanceTerminated"))
}

func TestDeleteBeforeAnythingWasLaunched(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.cluster(true)
	f.awsMachine("m", f.ownerMachine("m", "m", false))
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForBootstrapData"))
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.calls("TerminateInstances") + f.calls("RunInstances")).To(BeZero())
}

func TestDeleteAfterTheLaunchWasRefused(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.gateBackoff()
	f.sim.AddFault(apiFault("VcpuLimitExceeded", 0))
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False QuotaExceeded"))
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue(), "a refusal is certain: there is nothing to look for")
	f.Expect(f.calls("TerminateInstances")).To(BeZero())
}

// EC2 has answered, with a code that is in no table: there is certainly no instance, whatever the code means.
func TestDeleteAfterARefusalOfAnUnknownKind(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.gateBackoff()
	f.sim.AddFault(apiFault("SomethingNew", 0))
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	f.Expect(f.messages["m"]).To(ContainSubstring("SomethingNew"))
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue(), "there is nothing to look for")
	f.Expect(f.calls("TerminateInstances")).To(BeZero())
}

func TestDeleteWhenTheAnswerWasLost(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Consistency: 500 * time.Millisecond}})
	f.gateBackoff() // The call is not repeated: the deletion must find the instance by its token.
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Cut: simapi.CutAfter})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	f.stop()
	f.backoff = func(driver.Class, int) time.Duration { return 50 * time.Millisecond }
	f.delete("m")
	f.start()
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.instances()).To(HaveLen(1))
	f.Expect(f.live()).To(BeZero())
}

func TestDeleteWhenTheAnswerWasLostAndTheRepetitionRefused(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	gate := f.gateBackoff()
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Count: 1, Cut: simapi.CutAfter})
	f.sim.AddFault(apiFault("RequestLimitExceeded", 0))
	f.sim.AddFault(simapi.Fault{ID: "blind", Action: "DescribeInstances", Error: &simapi.APIError{Code: "UnauthorizedOperation"}})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	gate.open(f, "m")
	f.Eventually(f.ready("m")).Should(Equal("False Throttled"))
	f.delete("m")
	f.Consistently(f.gone("m"), "300ms").Should(BeFalse(), "a refusal proves nothing about the call before it")
	f.sim.RemoveFault("blind")
	gate.open(f, "m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.instances()).To(HaveLen(1))
	f.Expect(f.live()).To(BeZero())
}

func TestDeleteOfAnObjectThatCameWithAProviderID(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	f.stop()
	base := m.DeepCopy()
	m.Finalizers = nil
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
	f.start()
	f.Eventually(func() []string { m, _ := f.get("m"); return m.Finalizers }).ShouldNot(BeEmpty())
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}

func TestDeleteWhenTheCallWasNeverMade(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.gateBackoff()
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Cut: simapi.CutBefore})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForLaunchOutcome"))
	f.Consistently(f.gone("m"), "300ms").Should(BeFalse(), "the instance might still show up")
	f.clock.step(2 * time.Hour)
	f.touch("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.instances()).To(BeEmpty())
}

func TestDeleteWhileLaunching(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Pending: time.Hour, Consistency: 400 * time.Millisecond}})
	f.start()
	f.machine("m")
	f.Eventually(func() int { return len(f.instances()) }).Should(Equal(1))
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero(), "not found shortly after the launch is not gone")
}

func TestDeleteAcrossARestart(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{ShuttingDown: 3 * time.Second}})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False TerminatingInstance"))
	f.stop()
	f.start()
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}

func TestDeleteBlockedIsReported(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.sim.AddFault(simapi.Fault{ID: "protected", Action: "TerminateInstances",
		Error: &simapi.APIError{Code: "OperationNotPermitted", Message: "The instance may not be terminated."}})
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False DeletionBlocked"))
	f.sim.RemoveFault("protected")
	f.Eventually(f.gone("m")).Should(BeTrue())
}

func TestDeleteWaitsForDependants(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	// A volume with the owner's tag that outlives the instance; here it hangs on another one.
	api, err := f.clients(f.ctx, testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	out, err := api.RunInstances(f.ctx, &ec2.RunInstancesInput{
		ImageId: aws.String(testImage), InstanceType: "m5.large", SubnetId: aws.String(subnetA),
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeVolume,
			Tags: []types.Tag{{Key: aws.String(instance.TagOwnerUID), Value: aws.String(string(m.UID))}}}},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForDependants"))
	f.Expect(f.messages["m"]).To(MatchRegexp("volume vol-"))
	f.terminate(*out.Instances[0].InstanceId)
	f.Eventually(f.gone("m")).Should(BeTrue())
}

func TestDeleteWhenDependantsCannotBeListed(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.sim.AddFault(simapi.Fault{ID: "blind", Action: "DescribeVolumes", Error: &simapi.APIError{Code: "RequestLimitExceeded"}})
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False Throttled"))
	f.Consistently(f.gone("m"), "300ms").Should(BeFalse())
	f.sim.RemoveFault("blind")
	f.Eventually(f.gone("m")).Should(BeTrue())
}

// TestDeleteWithoutOwnerAndCluster: the Machine may be created a moment later, so that the instance stays for a minute.
func TestDeleteWithoutOwnerAndCluster(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	owner, cluster := &clusterv1.Machine{}, &clusterv1.Cluster{}
	owner.Namespace, owner.Name = f.namespace, "m"
	cluster.Namespace, cluster.Name = f.namespace, "green"
	f.Expect(f.client.Delete(f.ctx, owner)).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, cluster)).To(Succeed())
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForMachineDeletion"))
	f.Expect(f.live()).To(Equal(1))
	f.clock.step(time.Minute)
	f.touch("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}
