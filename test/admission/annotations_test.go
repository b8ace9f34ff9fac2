package admission_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/doccheck"
)

// annotationsPage has the commands that users type.
const annotationsPage = "docs/reference/annotations.md"

// TestCommandsOfTheAnnotationsPage types the commands of the page, in their order, with the webhooks on; and the tests that show what
// they do exist.
func TestCommandsOfTheAnnotationsPage(t *testing.T) {
	serve(t)
	g := NewWithT(t)
	page := doccheck.Read(t, annotationsPage)
	page.CheckLinks(t)
	typed := 0
	for _, heading := range []string{"Deleting a Machine", "Unhealthy Machines", "MachineSets and MachineDeployments", "Anything"} {
		for _, row := range page.Table(t, heading) {
			g.Expect(row["Command"].Code).To(HaveLen(1), row["Wanted"].Text)
			command := row["Command"].Code[0]
			t.Run(command, func(t *testing.T) { enter(t, command) })
			typed++
			shown := row["Shown by"].Code
			g.Expect(shown).To(HaveLen(2), command)
			g.Expect(doccheck.Tests(t, shown[0])).To(ContainElement(shown[1]), command)
		}
	}
	g.Expect(typed).To(BeNumerically(">", 20))
}

func plainAWSMachine() *infrav1.AWSMachine {
	return &infrav1.AWSMachine{Spec: infrav1.AWSMachineSpec{
		Region: "eu-west-1", InstanceType: "m5.large", AMI: infrav1.AMIReference{ID: "ami-0123456789abcdef0"},
		Subnets: []infrav1.SubnetReference{{ID: "subnet-0123456789abcdef0"}},
	}}
}

// enter types a command in a namespace of its own that has an object of each kind with the name NAME.
func enter(t *testing.T, command string) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	ns := namespace(t)
	objects := map[string]client.Object{
		"machine": plainMachine(), "machineset": plainSet(), "machinedeployment": plainDeployment(), "cluster": plainCluster(),
		"awsmachine": plainAWSMachine(),
	}
	if strings.HasPrefix(command, "kubectl delete node ") {
		objects = map[string]client.Object{"node": &corev1.Node{}} // It is in no namespace.
	}
	for kind, object := range objects {
		if kind != "node" {
			object.SetNamespace(ns)
		}
		object.SetName("name")
		g.Expect(live.Create(ctx, object)).To(Succeed())
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(kubeconfig, env.Kubeconfig, 0o600)).To(Succeed())
	words := strings.Fields(strings.ReplaceAll(command, "NAME", "name"))
	g.Expect(words[0]).To(Equal("kubectl"))
	run := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"),
		append([]string{"--kubeconfig", kubeconfig, "--namespace", ns}, words[1:]...)...)
	output, err := run.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))

	verb, object := words[1], objects[words[2]]
	g.Expect(object).NotTo(BeNil(), "an object of that kind")
	err = live.Get(ctx, client.ObjectKeyFromObject(object), object)
	if verb == "delete" {
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err != nil || !object.GetDeletionTimestamp().IsZero()).To(BeTrue(), "it is gone, or on its way")
		return
	}
	g.Expect(err).NotTo(HaveOccurred())
	have := map[string]map[string]string{"annotate": object.GetAnnotations(), "label": object.GetLabels()}[verb]
	for _, pair := range slices.DeleteFunc(words[4:], func(word string) bool { return strings.HasPrefix(word, "--") }) {
		key, value, _ := strings.Cut(pair, "=")
		g.Expect(have).To(HaveKeyWithValue(key, value))
	}
}
