package tilt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"go.starlark.net/starlark"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testinputs"
)

// own is our Tiltfile.
const own = "config/tilt/Tiltfile"

// overlays are the kustomizations that it deploys, by its paths, and the files that `make manifests` has rendered of them.
var overlays = map[string]string{
	"core": "tilt/core.yaml", "cloudconfig": "tilt/cloudconfig.yaml", "aws": "tilt/aws.yaml", "azure": "tilt/azure.yaml", "gcp": "tilt/gcp.yaml",
	"clouds": "tilt/clouds.yaml", "../target-cluster": "target/target-components.yaml",
}

// evaluateOwn evaluates it with the settings of tilt-settings.yaml.
func evaluateOwn(g *WithT, settings string) *evaluation {
	files := map[string]string{}
	for dir, file := range overlays {
		g.Expect(filepath.Join(root(g), filepath.Dir(own), dir, "kustomization.yaml")).To(BeARegularFile())
		content, err := os.ReadFile(filepath.Join(root(g), "out", file))
		g.Expect(err).NotTo(HaveOccurred(), "run `make manifests`")
		files["kustomize:"+dir] = string(content)
	}
	path := filepath.Join(root(g), own)
	files[filepath.Dir(path)+"/../../tilt-settings.yaml"] = settings
	return evaluate(g, path, files)
}

// objects are all that it deploys.
func (e *evaluation) objects() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, c := range e.calls["k8s_yaml"] {
		for _, document := range strings.Split(c.text("yaml"), "\n---\n") {
			object := &unstructured.Unstructured{}
			e.g.Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed())
			all = append(all, object)
		}
	}
	return all
}

// deployments are those of them.
func (e *evaluation) deployments() map[string]*appsv1.Deployment {
	found := map[string]*appsv1.Deployment{}
	for _, object := range e.objects() {
		if object.GetKind() == "Deployment" {
			d := &appsv1.Deployment{}
			e.g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d)).To(Succeed())
			found[d.Name] = d
		}
	}
	return found
}

// TestOwnTiltfile: every image that is deployed is built, from what an earlier command has compiled, and a change of a manager's code is
// copied into its container, where the program that restarts it looks for it and the file system is writable.
func TestOwnTiltfile(t *testing.T) {
	g := NewWithT(t)
	e := evaluateOwn(g, "providers: [aws, azure, gcp]")
	built := map[string]call{}
	for _, c := range e.calls["docker_build"] {
		built[c.text("ref")] = c
	}
	g.Expect(built).To(HaveLen(6), "five managers and the clouds")
	deployments := e.deployments()
	g.Expect(deployments).To(HaveLen(7), "the Azure simulator is in the Pod of the provider")
	used := map[string]bool{}
	for _, d := range deployments {
		workload := e.find("k8s_resource", "workload", d.Name)
		for _, needed := range workload.list("resource_deps") {
			e.find("local_resource", "name", needed)
		}
		for i, c := range d.Spec.Template.Spec.Containers {
			ref, _, _ := strings.Cut(c.Image, ":")
			used[ref] = true
			g.Expect(built).To(HaveKey(ref), "%s of %s is built", c.Name, d.Name)
			dockerfile := built[ref].text("dockerfile_contents")
			g.Expect(dockerfile).To(ContainSubstring(fmt.Sprintf("\nUSER %d:%d\n", *c.SecurityContext.RunAsUser, *c.SecurityContext.RunAsGroup)))
			if d.Name == "ec2" || d.Name == "gcp" || i > 0 {
				g.Expect(c.Command).To(HaveLen(1))
				continue
			}
			g.Expect(c.Command).To(BeEmpty(), "the entrypoint is the program that restarts")
			g.Expect(*c.SecurityContext.ReadOnlyRootFilesystem).To(BeFalse())
			g.Expect(dockerfile).To(ContainSubstring(`ENTRYPOINT ["/home/nonroot/restart", "/home/nonroot/manager"]`))
		}
	}
	g.Expect(used).To(HaveLen(len(built)))
	for _, c := range e.calls["sync"] {
		g.Expect(c.text("remote")).To(Equal("/home/nonroot/manager"))
	}
	g.Expect(e.calls["sync"]).To(HaveLen(5))
	for _, p := range entries(g) {
		name := strings.TrimPrefix(p.Name, "millwright-")
		g.Expect(built[p.Config.Image].text("context")).To(HaveSuffix("/config/tilt/.tiltbuild/" + name))
		binary := e.find("local_resource", "name", name+"_binary")
		g.Expect(binary.text("cmd")).To(ContainSubstring("-o config/tilt/.tiltbuild/" + name + "/manager ./" + p.Config.Context + " "))
		g.Expect(binary.list("deps")).To(HaveLen(len(p.Config.LiveReloadDeps)))
		for _, dep := range binary.list("deps") {
			_, err := os.Stat(dep)
			g.Expect(err).NotTo(HaveOccurred(), "%s is watched", dep)
		}
	}
	g.Expect(e.find("local_resource", "name", "sample-machines-gcp").text("cmd")).To(HaveSuffix("/config/tilt/sample.sh machines gcp"))
	for _, c := range e.calls["local_resource"] {
		if strings.HasPrefix(c.text("name"), "sample-") {
			g.Expect(c["auto_init"]).To(Equal(starlark.False), "machines are created on request")
		}
	}
}

// TestOwnTiltfileByDefault is one provider, only in kind.
func TestOwnTiltfileByDefault(t *testing.T) {
	g := NewWithT(t)
	e := evaluateOwn(g, "{}")
	g.Expect(e.deployments()).To(HaveLen(5))
	g.Expect(e.deployments()).NotTo(HaveKey("millwright-azure"))
	allowed, ok := e.calls["allow_k8s_contexts"][0]["contexts"].(*starlark.List)
	g.Expect(ok).To(BeTrue())
	g.Expect(allowed.Len()).To(BeZero(), "Tilt itself allows those of kind")
}

// program is a build command of a program.
var program = regexp.MustCompile(`go build -trimpath -buildvcs=false -o (\S+) (\./\S+)`)

// TestWhatIsBuiltIsAProgram: each path that a command compiles is a package main, and none is in the tree of what a command watches.
func TestWhatIsBuiltIsAProgram(t *testing.T) {
	g := NewWithT(t)
	e := evaluateOwn(g, "providers: [aws, azure, gcp]")
	var packages []string
	for _, c := range e.calls["local_resource"] {
		for _, m := range program.FindAllStringSubmatch(c.text("cmd"), -1) {
			packages = append(packages, m[2])
			for _, dep := range c.list("deps") {
				g.Expect(filepath.Join(root(g), m[1])).NotTo(HavePrefix(filepath.Clean(dep)+"/"), "a build would start the next one")
			}
		}
	}
	slices.Sort(packages)
	g.Expect(packages).To(HaveLen(10), "a program that restarts, five managers, three clouds and a machine")
	testinputs.Repository(t)
	list := exec.Command("go", append([]string{"list", "-f", "{{.Name}}"}, packages...)...)
	list.Dir = root(g)
	output, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(string(output))).To(HaveEach("main"))
}
