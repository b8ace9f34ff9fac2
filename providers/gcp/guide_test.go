package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

const guide = "docs/guides/gcp.md"

// guideObjects are the objects of the guide, by kind.
func guideObjects(t *testing.T) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, o := range doccheck.Read(t, guide).Examples(t, "") {
		found[o.GetKind()] = o
	}
	return found
}

// TestTheExamplesOfTheGuideAreAccepted by the API server, those of the provider's own kinds and of Cluster API, and refer to each other.
func TestTheExamplesOfTheGuideAreAccepted(t *testing.T) {
	f := newFixture(t)
	page := doccheck.Read(t, guide)
	page.CheckLinks(t)
	page.CheckFiles(t)
	objects := guideObjects(t)
	deployment := &clusterv1.MachineDeployment{}
	f.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(objects["MachineDeployment"].Object, deployment)).To(Succeed())
	f.Expect(deployment.Spec.Template.Spec.InfrastructureRef).To(And(
		HaveField("Kind", "GCPMachineTemplate"), HaveField("Name", objects["GCPMachineTemplate"].GetName())))
	f.Expect(deployment.Spec.Template.Spec.Bootstrap.ConfigRef.Name).To(Equal(objects["CloudConfigTemplate"].GetName()))
	f.Expect(deployment.Spec.ClusterName).To(Equal(objects["Cluster"].GetName()))
	delete(objects, "CloudConfigTemplate") // Of another provider, whose definitions this API server does not have: AWS's guide has the same.
	for _, o := range objects {
		doccheck.Apply(t, c, f.Namespace, []*unstructured.Unstructured{o}, client.DryRunAll)
	}
}

// TestAMachineOfTheGuide is launched by the simulator, in a project that has the network and the image of the guide.
func TestAMachineOfTheGuide(t *testing.T) {
	f := newFixture(t)
	template := &infrav1.GCPMachineTemplate{}
	f.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(guideObjects(t)["GCPMachineTemplate"].Object, template)).To(Succeed())
	spec := template.Spec.Template.Spec
	m := f.machine("m", func(s *infrav1.GCPMachineSpec) {
		*s = spec
		s.Project, s.Image, s.Subnetwork = f.project, infrav1.ImageReference{
			Project: "images",
			Family:  "node",
		}, "projects/"+f.project+"/regions/us-central1/subnetworks/default"
	})
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	launched := sim.Instances(f.project)[0]
	f.Expect(launched.Tags.Items).To(Equal(spec.NetworkTags))
	f.Expect(launched.ServiceAccounts[0].Email).To(Equal(spec.ServiceAccount.Email))
	f.deleted(m)
}

// TestCommandsOfTheGuide name the objects of the manifests, and the role of the samples.
func TestCommandsOfTheGuide(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(testenv.Root(), guide))
	g.Expect(err).NotTo(HaveOccurred())
	manager, err := os.ReadFile(filepath.Join(testenv.Root(), "config/providers/gcp/rbac/service_account.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, match := range regexp.MustCompile(`svc\.id\.goog\[([a-z-]+)/([a-z-]+)\]`).FindAllSubmatch(text, -1) {
		g.Expect(string(manager)).To(And(ContainSubstring("namespace: "+string(match[1])), ContainSubstring("name: "+string(match[2]))))
	}
	files := regexp.MustCompile(`--file=(\S+)`).FindAllSubmatch(text, -1)
	g.Expect(files).NotTo(BeEmpty())
	for _, match := range files {
		g.Expect(filepath.Join(testenv.Root(), string(match[1]))).To(BeAnExistingFile())
	}
}
