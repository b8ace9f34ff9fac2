package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/doccheck"
)

const (
	guide    = "docs/guides/aws.md"
	guideEKS = "docs/guides/eks.md"
)

// The API server takes each object of the guides.
func TestTheExamplesOfTheGuideAreAccepted(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	for _, path := range []string{guide, guideEKS} {
		doccheck.Apply(t, f.client, f.namespace, doccheck.Read(t, path).Examples(t, ""), client.DryRunAll)
	}
}

// A machine of the guide's template for EKS is launched with the user data as the guide has them, from an account that has what
// the guide asks for.
func TestAMachineOfTheGuideForEKS(t *testing.T) {
	objects := map[string]*unstructured.Unstructured{}
	for _, o := range doccheck.Read(t, guideEKS).Examples(t, "") {
		objects[o.GetKind()] = o
	}
	g := NewWithT(t)
	template, secret := &infrav1.AWSMachineTemplate{}, &corev1.Secret{}
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	g.Expect(convert(objects["AWSMachineTemplate"].Object, template)).To(Succeed())
	g.Expect(convert(objects["Secret"].Object, secret)).To(Succeed())
	deployment := &clusterv1.MachineDeployment{}
	g.Expect(convert(objects["MachineDeployment"].Object, deployment)).To(Succeed())
	g.Expect(deployment.Spec.Template.Spec.Bootstrap.DataSecretName).To(HaveValue(Equal(secret.Name)))
	g.Expect(deployment.Spec.Template.Spec.InfrastructureRef.Name).To(Equal(template.Name))
	g.Expect(objects["Cluster"].GetName()).To(Equal(deployment.Spec.ClusterName))

	catalog := simulator.DefaultCatalog(testRegion)
	catalog.Parameters = []simulator.Parameter{{Name: template.Spec.Template.Spec.AMI.SSMParameter, Value: testImage, Version: 1}}
	catalog.Subnets[0].Tags = map[string]string{"role": "nodes"}
	catalog.InstanceProfiles = []string{template.Spec.Template.Spec.IAMInstanceProfile}
	f := newFixture(t, simulator.Options{Catalog: catalog})
	f.start()
	f.cluster(true)
	secret.Namespace = f.namespace
	data := secret.StringData["value"]
	f.Expect(f.client.Create(f.ctx, secret)).To(Succeed())
	owner := f.ownerMachine("m", "m", false, func(m *clusterv1.Machine) {
		m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To(secret.Name)}
	})
	f.awsMachine("m", owner, func(m *infrav1.AWSMachine) { m.Spec = template.Spec.Template.Spec })
	f.becomesReady("m")
	f.Expect(string(f.userData(f.instances()[0].ID))).To(Equal(data))
}
