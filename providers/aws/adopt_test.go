package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/orphans"
)

// lost is a machine of which a restored backup knows nothing: it ran, and neither its object nor its Machine is there.
func lost(t *testing.T) (*fixture, *infrav1.AWSMachine) {
	t.Helper()
	f := collecting(t, orphans.PolicyReport)
	f.start()
	m := f.expunged("m")
	f.Expect(f.client.Delete(f.ctx, f.owner("m"))).To(Succeed())
	return f, m
}

// recreated makes the objects again, with the provider ID of what is lost.
func (f *fixture) recreated(name, providerID string, adjust ...func(*infrav1.AWSMachine)) *infrav1.AWSMachine {
	f.t.Helper()
	owner := f.ownerMachine(name, name, true)
	return f.awsMachine(name, owner, append(adjust, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = providerID })...)
}

// TestTakingBackAnInstance: an object that is recreated with the provider ID of its instance has it again, without a call that changes
// anything in the cloud, and ends it when it is deleted.
func TestTakingBackAnInstance(t *testing.T) {
	f, was := lost(t)
	launches, tagged := f.calls("RunInstances"), f.calls("CreateTags")
	f.recreated("m", was.Spec.ProviderID)
	f.start()
	m := f.becomesReady("m")
	f.Expect(m.UID).NotTo(Equal(was.UID))
	f.Expect(m.Status.InstanceID).To(Equal(was.Status.InstanceID))
	f.Expect(m.Finalizers).To(ContainElement(inframachine.Finalizer))
	f.Expect(m.Annotations[inframachine.LaunchAnnotation]).To(ContainSubstring(string(was.UID)), "the UID of the mark")
	f.Eventually(f.events).Should(ContainElement("InstanceAdopted"))
	f.Expect(f.calls("RunInstances")).To(Equal(launches))
	f.Expect(f.calls("CreateTags")).To(Equal(tagged))
	f.Expect(f.live()).To(Equal(1))

	f.stop()
	f.start()
	f.becomesReady("m")
	f.moved("m")
	f.Expect(f.becomesReady("m").Status.InstanceID).To(Equal(was.Status.InstanceID), "it survives a move")
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}

// TestWhatIsNotTakenBack: whatever is not certainly the object's own is left to whom it belongs, and why is in the condition.
func TestWhatIsNotTakenBack(t *testing.T) {
	for name, test := range map[string]struct {
		// change comes before the object is recreated and the provider starts, and returns its provider ID.
		change func(f *fixture, was *infrav1.AWSMachine) (name, providerID string)
		adjust func(*infrav1.AWSMachine)
		why    string
	}{
		"of another name": {func(_ *fixture, was *infrav1.AWSMachine) (string, string) { return "n", was.Spec.ProviderID }, nil,
			"it was not launched for an object of this namespace and name"},
		"another owner's": {func(f *fixture, _ *infrav1.AWSMachine) (string, string) {
			_, id := f.foreign()
			return "m", id
		}, nil, "it was not launched for an object of this namespace and name"},
		"a copy of the tags": {func(f *fixture, was *infrav1.AWSMachine) (string, string) {
			id, providerID := f.foreign()
			f.tag(id, f.tagsOf(was.Status.InstanceID))
			return "m", providerID
		}, nil, "was not launched for it"},
		"of a Cluster that was recreated": {func(f *fixture, was *infrav1.AWSMachine) (string, string) {
			f.Expect(f.client.Delete(f.ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "green"}})).To(Succeed())
			f.cluster(true)
			return "m", was.Spec.ProviderID
		}, nil, "it was launched in a Cluster with another UID"},
		"without a lineage": {func(f *fixture, was *infrav1.AWSMachine) (string, string) {
			_, err := f.ec2().DeleteTags(f.ctx, &ec2.DeleteTagsInput{
				Resources: []string{was.Status.InstanceID}, Tags: []types.Tag{{Key: aws.String(instance.TagLineage)}}})
			f.Expect(err).NotTo(HaveOccurred())
			return "m", was.Spec.ProviderID
		}, nil, "it has no lineage"},
		"terminated": {func(f *fixture, was *infrav1.AWSMachine) (string, string) {
			f.terminate(was.Status.InstanceID)
			return "m", was.Spec.ProviderID
		}, nil, "it is Terminat"},
		"for an object without a Machine": {func(_ *fixture, was *infrav1.AWSMachine) (string, string) { return "m", was.Spec.ProviderID },
			func(m *infrav1.AWSMachine) { m.OwnerReferences = nil }, "no Machine owns this object"},
	} {
		t.Run(name, func(t *testing.T) {
			f, was := lost(t)
			object, providerID := test.change(f, was)
			launches := f.calls("RunInstances")
			adjust := test.adjust
			if adjust == nil {
				adjust = func(*infrav1.AWSMachine) {}
			}
			if object != "m" {
				f.secret(object)
			}
			f.recreated(object, providerID, adjust)
			f.start()
			f.clock.step(2 * f.options.VisibilityGrace)
			f.touch(object)
			f.Eventually(f.ready(object)).Should(Equal("False ForeignInstance"), func() string { return f.messages[object] })
			f.Expect(f.messages[object]).To(ContainSubstring(test.why))
			f.Expect(f.calls("RunInstances")).To(Equal(launches), "nothing is launched instead")
			f.Expect(f.events()).NotTo(ContainElement("InstanceAdopted"))
			live := f.live()
			f.delete(object)
			if name == "terminated" {
				f.Eventually(f.gone(object)).Should(BeTrue(), "there is nothing to be ended")
			} else {
				f.Eventually(f.ready(object)).Should(Equal("False DeletionBlocked"))
			}
			f.Expect(f.live()).To(Equal(live), "nor ended")
		})
	}
}
