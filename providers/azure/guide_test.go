package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/doccheck"
)

const guide = "docs/guides/azure.md"

// TestTheExamplesOfTheGuideAreAccepted: the API server takes each object of the guide.
func TestTheExamplesOfTheGuideAreAccepted(t *testing.T) {
	page := doccheck.Read(t, guide)
	page.CheckLinks(t)
	f := newFixture(t)
	doccheck.Apply(t, c, f.Namespace, page.Examples(t, ""), client.DryRunAll)
}

// TestAMachineOfTheGuide: a machine of the guide's template runs in a subscription that has what the guide makes.
func TestAMachineOfTheGuide(t *testing.T) {
	f := newFixture(t)
	objects := map[string]*unstructured.Unstructured{}
	for _, o := range doccheck.Read(t, guide).Examples(t, "") {
		objects[o.GetKind()] = o
	}
	template, deployment := &infrav1.AzureMachineTemplate{}, &clusterv1.MachineDeployment{}
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	f.Expect(convert(objects["AzureMachineTemplate"].Object, template)).To(Succeed())
	f.Expect(convert(objects["MachineDeployment"].Object, deployment)).To(Succeed())
	f.Expect(deployment.Spec.Template.Spec.InfrastructureRef.Name).To(Equal(template.Name))
	f.Expect(objects["Cluster"].GetName()).To(Equal(deployment.Spec.ClusterName))
	spec := template.Spec.Template.Spec
	f.Expect(spec.SubscriptionID).To(Equal(arm.DefaultSubscription))
	f.Expect(strings.EqualFold(spec.Image.ID, arm.DefaultImage)).To(BeTrue())
	f.Expect(strings.EqualFold(spec.SubnetID, arm.DefaultSubnet)).To(BeTrue())
	m := f.machine("m1", func(s *infrav1.AzureMachineSpec) {
		*s = spec
		s.ResourceGroup = f.group // That of this test.
	})
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.deleted(m)
}
