package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/testenv/machines"
)

// foreign runs an instance that no AWSMachine asked for, and returns its ID and provider ID.
func (f *fixture) foreign() (id, providerID string) {
	f.t.Helper()
	api, err := f.clients(f.ctx, testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	out, err := api.RunInstances(f.ctx, &ec2.RunInstancesInput{
		ImageId: aws.String(testImage), InstanceType: "m5.large", SubnetId: aws.String(subnetA),
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
	})
	f.Expect(err).NotTo(HaveOccurred())
	id = *out.Instances[0].InstanceId
	return id, "aws:///" + zoneA + "/" + id
}

// mark sets the tags of ownership on an instance, as a user with rights in the account would.
func (f *fixture) mark(id string, m *infrav1.AWSMachine) {
	f.t.Helper()
	f.tag(id, map[string]string{
		instance.TagOwnerUID: string(m.UID), instance.TagMachine: m.Namespace + "/" + m.Name,
	})
}

func (f *fixture) tag(id string, tags map[string]string) {
	f.t.Helper()
	in := &ec2.CreateTagsInput{Resources: []string{id}}
	for key, value := range tags {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	_, err := f.ec2().CreateTags(f.ctx, in)
	f.Expect(err).NotTo(HaveOccurred())
}

// tagger launches and changes tags, as another user in the account would.
type tagger interface {
	RunInstances(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
	CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
	DeleteTags(context.Context, *ec2.DeleteTagsInput, ...func(*ec2.Options)) (*ec2.DeleteTagsOutput, error)
}

func (f *fixture) ec2() tagger {
	f.t.Helper()
	api, err := f.clients(f.ctx, testRegion)
	f.Expect(err).NotTo(HaveOccurred())
	client, ok := api.(tagger)
	f.Expect(ok).To(BeTrue())
	return client
}

// Anyone who may create AWSMachines in some namespace could end any instance of the account.
func TestAForeignInstanceIsNotEnded(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	id, providerID := f.foreign()
	f.start()
	m := f.awsMachine("thief", nil, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = providerID })
	f.Eventually(func() []string { m, _ := f.get("thief"); return m.Finalizers }).ShouldNot(BeEmpty())
	f.delete("thief")
	f.Eventually(f.ready("thief")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.messages["thief"]).To(And(ContainSubstring(id), ContainSubstring(instance.TagOwnerUID+"="+string(m.UID)),
		ContainSubstring(inframachine.Finalizer)), "what to do is explained")
	f.Expect(f.calls("TerminateInstances")).To(BeZero())
	f.Expect(f.live()).To(Equal(1))

	f.mark(id, m)
	f.Eventually(f.gone("thief")).Should(BeTrue(), "the one who may tag it has marked it as this object's")
	f.Expect(f.live()).To(BeZero())
}

// A record of a launch is an annotation, which anyone may write who may write AWSMachines.
func TestAForgedLaunchRecordTakesNothing(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	victim := f.becomesReady("m")
	thief := func(name string, forge func(*infrav1.AWSMachine)) *infrav1.AWSMachine {
		f.secret(name)
		return f.awsMachine(name, f.ownerMachine(name, name, true), func(m *infrav1.AWSMachine) {
			m.Annotations = map[string]string{inframachine.LaunchAnnotation: victim.Annotations[inframachine.LaunchAnnotation]}
			m.Finalizers = []string{inframachine.Finalizer}
			forge(m)
		})
	}
	thief("thief", func(m *infrav1.AWSMachine) { m.Spec.ProviderID = victim.Spec.ProviderID })
	f.Eventually(f.ready("thief")).Should(Equal("False ForeignInstance"))
	m, err := f.get("thief")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.Addresses).To(BeEmpty(), "nothing is reported about a foreign instance")
	f.delete("thief")
	f.Eventually(f.ready("thief")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.live()).To(Equal(1))
	f.Expect(f.calls("TerminateInstances")).To(BeZero())

	thief("copier", func(*infrav1.AWSMachine) {})
	f.Expect(f.becomesReady("copier").Spec.ProviderID).NotTo(Equal(victim.Spec.ProviderID), "the record alone leads to no instance of another")
	f.delete("copier")
	f.Eventually(f.gone("copier")).Should(BeTrue())
	f.Expect(f.alive(victim.Status.InstanceID)).To(BeTrue())
	f.Expect(f.ready("m")()).To(Equal("True InstanceRunning"))
}

// A launch under the UID of another object marks what it makes with it; that must not hold up the other's deletion.
func TestALaunchUnderAForeignUIDBlocksNoOther(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	victim := f.becomesReady("m")
	f.machine("thief", func(m *infrav1.AWSMachine) {
		m.Annotations = map[string]string{inframachine.LaunchAnnotation: fmt.Sprintf(`{"uid":%q,"attempt":7}`, victim.UID)}
	})
	f.becomesReady("thief")
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue(), "the thief's volume is not the victim's")
	f.Expect(f.live()).To(Equal(1))
	f.Expect(f.ready("thief")()).To(Equal("True InstanceRunning"))
}

// A token is known to anyone who knows the UID. EC2 gives the launch that uses it second an error or the instance of the first.
func TestALaunchWithTheTokenOfAnotherBlocksNoOther(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.cluster(true)
	victim := f.awsMachine("victim", f.ownerMachine("victim", "victim", false))
	f.machine("thief", func(m *infrav1.AWSMachine) {
		m.Annotations = map[string]string{inframachine.LaunchAnnotation: fmt.Sprintf(`{"uid":%q,"attempt":1}`, victim.UID)}
	})
	f.becomesReady("thief")
	f.secret("victim")
	f.nameData("victim", "victim")
	f.becomesReady("victim")
	f.delete("victim")
	f.Eventually(f.gone("victim")).Should(BeTrue())
	f.Expect(f.live()).To(Equal(1))
	f.Expect(f.ready("thief")()).To(Equal("True InstanceRunning"))
}

// To adopt an instance takes both sides: the object names it, and a user who may tag it names the object.
func TestAdoptionOfAnInstance(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.VisibilityGrace = f.options.CloudTimeout
	id, providerID := f.foreign()
	f.start()
	m := f.awsMachine("m", nil, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = providerID })
	f.clock.step(f.options.VisibilityGrace * 2)
	f.touch("m")
	f.Eventually(f.ready("m")).Should(Equal("False ForeignInstance"))
	f.Expect(f.messages["m"]).To(ContainSubstring(instance.TagMachine + "=" + f.namespace + "/m"))
	f.mark(id, m)
	f.Expect(f.becomesReady("m").Annotations).To(HaveKey(inframachine.LaunchAnnotation), "the UID of the mark is carried by moves")

	f.moved("m")
	f.becomesReady("m")
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}

// moved recreates the object as clusterctl move does: annotations stay, UID and status do not.
func (f *fixture) moved(name string) {
	f.t.Helper()
	f.stop()
	m, err := f.get(name)
	f.Expect(err).NotTo(HaveOccurred())
	moved := &infrav1.AWSMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences,
	}, Spec: m.Spec}
	m.Finalizers = nil
	f.Expect(f.client.Update(f.ctx, m)).To(Succeed())
	f.Expect(machines.WithoutCore(f.client).Delete(f.ctx, m)).To(Succeed())
	f.Expect(f.client.Create(f.ctx, moved)).To(Succeed())
	f.start()
}

// The mark that counts is the one that the instance has now.
func TestAnInstanceThatWasDisownedIsNotEnded(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	_, err := f.ec2().DeleteTags(f.ctx, &ec2.DeleteTagsInput{
		Resources: []string{m.Status.InstanceID}, Tags: []types.Tag{{Key: aws.String(instance.TagMachine)}},
	})
	f.Expect(err).NotTo(HaveOccurred())
	f.Eventually(f.ready("m")).Should(Equal("False ForeignInstance"))
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.live()).To(Equal(1))
	f.mark(m.Status.InstanceID, m)
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}

// Two management clusters in one account may have objects of the same namespace and name; their UIDs differ.
func TestTheInstanceOfAnotherManagementClusterStays(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	id, _ := f.foreign()
	f.tag(id, map[string]string{instance.TagOwnerUID: "another-uid", instance.TagMachine: f.namespace + "/m"})
	f.Eventually(f.listsSince(len(f.sim.Calls()))).Should(BeNumerically(">=", 2), "the inventory has seen it")
	f.touch("m")
	f.moved("m")
	f.Expect(f.becomesReady("m").Status.InstanceID).NotTo(Equal(id))
	f.Expect(f.messages["m"]).NotTo(ContainSubstring(id))
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.alive(id)).To(BeTrue())
	f.Expect(f.live()).To(Equal(1))
}

// Without any tag it is in no list any more.
func TestAnInstanceWithoutItsTagsIsNotEnded(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.VisibilityGrace = f.options.CloudTimeout
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	_, err := f.ec2().DeleteTags(f.ctx, &ec2.DeleteTagsInput{Resources: []string{m.Status.InstanceID}})
	f.Expect(err).NotTo(HaveOccurred())
	f.clock.step(f.options.VisibilityGrace * 2)
	f.touch("m")
	f.Eventually(f.ready("m")).Should(Equal("False ForeignInstance"))
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False DeletionBlocked"))
	f.Expect(f.live()).To(Equal(1))
}
