package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

func (f *fixture) template(name, instanceType string, adjust ...func(*infrav1.AWSMachineTemplate)) *infrav1.AWSMachineTemplate {
	f.t.Helper()
	template := &infrav1.AWSMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	template.Spec.Template.Spec = infrav1.AWSMachineSpec{
		Region: testRegion, InstanceType: instanceType, AMI: infrav1.AMIReference{ID: testImage},
		Subnets: []infrav1.SubnetReference{{ID: subnetA}}, SecurityGroupIDs: []string{testGroup},
	}
	for _, a := range adjust {
		a(template)
	}
	f.Expect(f.client.Create(f.ctx, template)).To(Succeed())
	return template
}

// capacity waits until the template's condition CapacityKnown is as expected, and returns the status.
func (f *fixture) capacity(
	template *infrav1.AWSMachineTemplate,
	status metav1.ConditionStatus,
	reason string,
) driverv1.MachineTemplateStatus {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		g.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
		condition := meta.FindStatusCondition(template.Status.Conditions, driverv1.CapacityKnownCondition)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(string(condition.Status) + " " + condition.Reason).To(Equal(string(status) + " " + reason))
		g.Expect(condition.ObservedGeneration).To(Equal(template.Generation))
	}).Should(Succeed())
	return template.Status.MachineTemplateStatus
}

func quantities(want map[corev1.ResourceName]string) types.GomegaMatcher {
	return WithTransform(func(list corev1.ResourceList) map[corev1.ResourceName]string {
		got := map[corev1.ResourceName]string{}
		for name, quantity := range list {
			got[name] = quantity.String()
		}
		return got
	}, Equal(want))
}

func TestCAPA3679TemplatesReportTheirCapacity(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	plain := f.template("plain", "m5.large", func(t *infrav1.AWSMachineTemplate) {
		t.Spec.Template.Spec.RootVolume = &infrav1.Volume{SizeGiB: new(int32(20))}
	})
	status := f.capacity(plain, metav1.ConditionTrue, driverv1.CapacityKnownReason)
	f.Expect(status.Capacity).To(quantities(map[corev1.ResourceName]string{"cpu": "2", "memory": "7477Mi", "ephemeral-storage": "17Gi"}))
	f.Expect(status.NodeInfo).To(Equal(driverv1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}))

	gpu := f.capacity(f.template("gpu", "g4dn.xlarge"), metav1.ConditionTrue, driverv1.CapacityKnownReason)
	f.Expect(gpu.Capacity).To(HaveKeyWithValue(corev1.ResourceName("nvidia.com/gpu"), resource.MustParse("1")))

	f.template("same", "m5.large")
	f.Expect(f.calls("DescribeInstanceTypes")).To(Equal(2), "one call for each instance type")
}

// karpenter-aws 1869: pods that request ephemeral storage find a Node. Without a size in the template the root volume is as large as the
// image's; an image that is not there leaves the rest of the capacity known.
func TestSize_RootVolumeUnset_HasTheDiskOfTheImage(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	disk := func(name string, change func(*infrav1.AWSMachineSpec)) float64 {
		status := f.capacity(f.template(name, "m5.large", func(t *infrav1.AWSMachineTemplate) { change(&t.Spec.Template.Spec) }),
			metav1.ConditionTrue, driverv1.CapacityKnownReason)
		f.Expect(status.Capacity.Memory().Value()).To(BeNumerically(">", 7<<30-1<<28))
		return float64(status.Capacity.StorageEphemeral().Value()) / (1 << 30)
	}
	ofImage := And(BeNumerically("<=", 8), BeNumerically(">", 6)) // The file system takes a part.
	f.Expect(disk("by-id", func(*infrav1.AWSMachineSpec) {})).To(ofImage)
	f.Expect(disk("root", func(s *infrav1.AWSMachineSpec) { s.RootVolume = &infrav1.Volume{Type: "gp3"} })).To(ofImage)
	f.Expect(disk("parameter", func(s *infrav1.AWSMachineSpec) {
		s.AMI = infrav1.AMIReference{ID: "resolve:ssm:" + simulator.DefaultParameter}
	})).To(ofImage)
	f.Expect(disk("sized", func(s *infrav1.AWSMachineSpec) { s.RootVolume = &infrav1.Volume{SizeGiB: new(int32(30))} })).
		To(And(BeNumerically("<=", 30), BeNumerically(">", 24)))
	f.Expect(disk("missing", func(s *infrav1.AWSMachineSpec) { s.AMI = infrav1.AMIReference{ID: "ami-0b000000000000009"} })).To(BeZero())
}

func TestTemplateWhoseCapacityIsUnknown(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "denied", Action: "DescribeInstanceTypes", Error: &simapi.APIError{Code: "UnauthorizedOperation"}})
	f.start()
	template := f.template("m", "m5.large")
	status := f.capacity(template, metav1.ConditionFalse, driverv1.UnauthorizedReason)
	f.Expect(status.Capacity).To(BeEmpty())
	f.Expect(status.Conditions[0].Message).To(ContainSubstring("check the permissions of identityRef, or of the provider's own credentials where that is not set"))
	f.sim.ClearFaults()
	f.clock.step(time.Hour)
	f.touchTemplate(template)
	f.capacity(template, metav1.ConditionTrue, driverv1.CapacityKnownReason)
}

// touchTemplate enqueues a template, as a change by another client would.
func (f *fixture) touchTemplate(template *infrav1.AWSMachineTemplate) {
	f.t.Helper()
	base := template.DeepCopy()
	template.Annotations = map[string]string{"test/touched": time.Now().Format(time.RFC3339Nano)}
	f.Expect(f.client.Patch(f.ctx, template, client.MergeFrom(base))).To(Succeed())
}

// A fresh template is changed often: owner references and annotations are set. What EC2 refuses permanently is asked for once.
func TestATemplateOfATypeThatDoesNotExistIsAskedForOnce(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	template := f.template("unknown", "x9.huge")
	unknown := f.capacity(template, metav1.ConditionFalse, driverv1.InvalidConfigurationReason)
	f.Expect(unknown.Conditions[0].Message).To(ContainSubstring("x9.huge"))
	for range 20 {
		f.clock.step(time.Hour)
		f.touchTemplate(template)
	}
	// Another template is seen after all of these changes.
	f.capacity(f.template("known", "m5.large"), metav1.ConditionTrue, driverv1.CapacityKnownReason)
	f.Consistently(func() int { return f.calls("DescribeInstanceTypes") }, "500ms").Should(Equal(2), "one for each template")
}

func TestPausedTemplateIsLeftAlone(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	template := f.template("m", "m5.large", func(t *infrav1.AWSMachineTemplate) {
		t.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	})
	f.Consistently(func() int { return f.calls("DescribeInstanceTypes") }, "300ms").Should(BeZero())
	base := template.DeepCopy()
	template.Annotations = nil
	f.Expect(f.client.Patch(f.ctx, template, client.MergeFrom(base))).To(Succeed())
	f.capacity(template, metav1.ConditionTrue, driverv1.CapacityKnownReason)
}
