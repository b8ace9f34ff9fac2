package machinedeployment

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

const guide = "docs/guides/rolling-updates.md"

// asStandIns makes of the kinds in the guide those that stand in for them here.
var asStandIns = strings.NewReplacer(
	"infrastructure.millwright.dev/v1alpha1", coretest.Group+"/v1", "infrastructure.millwright.dev", coretest.Group,
	"bootstrap.millwright.dev/v1alpha1", coretest.Group+"/v1", "bootstrap.millwright.dev", coretest.Group,
	"AWSMachineTemplate", workers.InfraTemplateKind, "CloudConfigTemplate", workers.ConfigTemplateKind,
	"clusterName: shop", "clusterName: "+workers.ClusterName, "name: workers\n", "name: d\n",
	"machinedeployment workers", "machinedeployment d", "machinedeployment/workers", "machinedeployment/d",
	"deployment-name=workers", "deployment-name=d",
)

// block is a fenced block below a heading.
type block struct {
	heading, language, text string
}

// blocksOf reads the objects and commands of a page, in their order.
func blocksOf(t *testing.T, path string) []block {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(testenv.Root(), path))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var blocks []block
	heading, open := "", false
	for line := range strings.Lines(string(source)) {
		switch language, fence := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case fence && open:
			open = false
		case fence:
			open = true
			blocks = append(blocks, block{heading: heading, language: language})
		case open:
			blocks[len(blocks)-1].text += line
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(line[3:])
		}
	}
	return blocks
}

// shell runs commands as a reader of the guide does, in the namespace of the world.
func (w *world) shell(t *testing.T, commands, input string) string {
	t.Helper()
	assets, err := controlplane.Assets()
	w.G.Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	w.G.Expect(os.WriteFile(kubeconfig, suite.Env.Kubeconfig, 0o600)).To(Succeed())
	function := `kubectl() { "$ASSETS/kubectl" --kubeconfig "$FILE" --namespace "$NAMESPACE" "$@"; }` + "\n"
	command := exec.CommandContext(t.Context(), "sh", "-euc", function+commands)
	command.Env = append(os.Environ(), "ASSETS="+assets, "FILE="+kubeconfig, "NAMESPACE="+w.Namespace)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	w.G.Expect(err).NotTo(HaveOccurred(), "%s\n%s", commands, output)
	return string(output)
}

// TestGuide runs the commands of the guide, and checks after each section that they have the documented effect.
func TestGuide(t *testing.T) {
	t.Parallel()
	doccheck.Read(t, guide).CheckLinks(t)
	w := newWorld(t)
	w.start(t)
	revision := func(n int32, template, revision string) func(Gomega) {
		return func(g Gomega) {
			g.Expect(w.current().Spec.Replicas).To(HaveValue(Equal(n)))
			w.settled(n, template, revision)(g)
		}
	}
	var forced string
	effects := map[string]func(Gomega){
		"Begin with three workers": revision(3, "workers-1", "1"),
		"Roll out":                 func(g Gomega) { g.Expect(w.current().Spec.Template.Spec.InfrastructureRef.Name).To(Equal("workers-2")) },
		"Watch it":                 revision(3, "workers-2", "2"),
		"Go back":                  revision(3, "workers-1", "3"),
		"Pause and resume":         revision(4, "workers-2", "4"),
		"Replace Machines though nothing changed": func(g Gomega) {
			revision(4, "workers-2", "5")(g)
			forced = w.listSets()[0].Name
		},
		"Decide about each Machine": func(g Gomega) {
			g.Expect(w.Machines()).To(HaveLen(4))
			g.Expect(w.current().Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(1)))
			g.Expect(w.current().Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(4)))
		},
		"Let all go first": func(g Gomega) {
			revision(4, "workers-2", "6")(g)
			g.Expect(w.listSets()[0].Name).NotTo(Equal(forced))
		},
		"Take certain Machines": revision(3, "workers-2", "6"),
	}
	blocks := blocksOf(t, guide)
	for i, b := range blocks {
		text := asStandIns.Replace(b.text)
		switch b.language {
		case "yaml":
			w.shell(t, "kubectl apply -f -", text)
		case "sh":
			t.Log(w.shell(t, text, ""))
		default:
			t.Fatalf("%s: a block of language %q is not run", b.heading, b.language)
		}
		if i == len(blocks)-1 || blocks[i+1].heading != b.heading {
			w.G.Expect(effects).To(HaveKey(b.heading))
			w.Eventually(effects[b.heading])
		}
	}
	w.G.Expect(ptr.Deref(w.current().Spec.Paused, false)).To(BeFalse())
	w.G.Expect(w.current().Annotations).NotTo(HaveKey(clusterv1.PausedAnnotation))
}

// TestEveryTraceIsInTheGuide: a trace that no page links to is of no use.
func TestEveryTraceIsInTheGuide(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(testenv.Root(), guide))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name := range stories {
		NewWithT(t).Expect(string(source)).To(ContainSubstring("core/machinedeployment/testdata/" + name + ".txt"))
	}
}
