package tilt

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/testinputs"
)

// entry is one of tilt-provider.json, in the words of https://cluster-api.sigs.k8s.io/developer/core/tilt#tilt-provider-configuration.
type entry struct {
	Name   string
	Config struct {
		Context, Image, Label string
		GoMain                string   `json:"go_main"`
		KustomizeFolder       string   `json:"kustomize_folder"`
		LiveReloadDeps        []string `json:"live_reload_deps"`
	}
}

// rendered are the manifests of the directories that entries name, which `make manifests` has rendered.
var rendered = map[string]string{
	"config/core":                  "out/core/core-components.yaml",
	"config/bootstrap/cloudconfig": "out/bootstrap-cloudconfig/bootstrap-components.yaml",
	"config/providers/aws":         "out/infrastructure-aws/infrastructure-components.yaml",
	"config/providers/azure":       "out/infrastructure-azure/infrastructure-components.yaml",
	"config/providers/gcp":         "out/infrastructure-gcp/infrastructure-components.yaml",
}

func root(g *WithT) string {
	dir, err := controlplane.Root()
	g.Expect(err).NotTo(HaveOccurred())
	return dir
}

func entries(g *WithT) []entry {
	content, err := os.ReadFile(filepath.Join(root(g), "tilt-provider.json"))
	g.Expect(err).NotTo(HaveOccurred())
	var all []entry
	g.Expect(yaml.UnmarshalStrict(content, &all)).To(Succeed())
	g.Expect(all).To(HaveLen(len(rendered)))
	return all
}

// manifest is what Cluster API's tilt-prepare renders from the directory of an entry, as far as its Tiltfile reads it.
func (p *entry) manifest(g *WithT) (text string, deployment *appsv1.Deployment) {
	dir := filepath.Join(p.Config.Context, p.Config.KustomizeFolder)
	g.Expect(filepath.Join(root(g), dir, "kustomization.yaml")).To(BeARegularFile())
	content, err := os.ReadFile(filepath.Join(root(g), rendered[dir]))
	g.Expect(err).NotTo(HaveOccurred())
	for _, document := range strings.Split(string(content), "\n---\n") {
		if strings.Contains(document, "\nkind: Deployment\n") {
			g.Expect(deployment).To(BeNil(), "%s has one Deployment", dir)
			deployment = &appsv1.Deployment{}
			g.Expect(yaml.Unmarshal([]byte(document), deployment)).To(Succeed())
		}
	}
	g.Expect(deployment).NotTo(BeNil(), dir)
	provider := "\n---\nkind: Provider\nmetadata:\n  name: " + p.Name + "\n  namespace: " + deployment.Namespace + "\n  labels: {}\n"
	return string(content) + provider, deployment
}

// upstreamTiltfile is that of the version of Cluster API that go.mod has.
func upstreamTiltfile(g *WithT) string {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	g.Expect(err).NotTo(HaveOccurred())
	return filepath.Join(strings.TrimSpace(string(output)), "Tiltfile")
}

// TestUpstreamsTiltfile: Cluster API's own Tiltfile, with this checkout among its provider_repos, builds and deploys each manager.
func TestUpstreamsTiltfile(t *testing.T) {
	g := NewWithT(t)
	repository := root(g)
	settings := map[string]any{
		"default_registry": "registry.example.com", "provider_repos": []string{repository}, "enable_core_provider": false, "enable_providers": []string{},
	}
	files := map[string]string{".tiltbuild/yaml/clusterctl.crd.yaml": "kind: CustomResourceDefinition\nmetadata: {name: providers}\n"}
	for _, p := range entries(g) {
		settings["enable_providers"] = append(settings["enable_providers"].([]string), p.Name)
		files[".tiltbuild/yaml/"+p.Name+".provider.yaml"], _ = p.manifest(g)
	}
	text, err := yaml.Marshal(settings)
	g.Expect(err).NotTo(HaveOccurred())
	files["tilt-settings.yaml"] = string(text)
	e := evaluate(g, upstreamTiltfile(g), files)

	g.Expect(e.calls["docker_build"]).To(HaveLen(len(rendered)))
	for _, p := range entries(g) {
		t.Run(p.Name, func(t *testing.T) {
			g := NewWithT(t)
			context := filepath.Join(repository, p.Config.Context)
			_, deployment := p.manifest(g)
			container := deployment.Spec.Template.Spec.Containers[0]
			image, _, _ := strings.Cut(container.Image, ":")
			g.Expect(container.Name).To(Equal("manager"), "tilt-prepare looks for it")
			g.Expect(e.find("docker_build", "ref", image).text("context")).To(Equal(context + "/.tiltbuild/bin/"))

			binary := e.find("local_resource", "name", strings.ToLower(p.Config.Label)+"_binary")
			g.Expect(binary.text("cmd")).To(And(HavePrefix("cd "+context+";"), HaveSuffix(" -o .tiltbuild/bin/manager .")))
			g.Expect(binary.list("deps")).To(HaveLen(len(p.Config.LiveReloadDeps)))

			resource := e.find("k8s_resource", "workload", deployment.Name)
			g.Expect(resource.text("new_name")).To(Equal(strings.ToLower(p.Config.Label) + "_controller"))
			g.Expect(resource.list("objects")).To(ContainElement(p.Name + ":Provider:" + deployment.Namespace))
		})
	}
}

func (e *evaluation) find(function, key, value string) call {
	i := slices.IndexFunc(e.calls[function], func(c call) bool { return c.text(key) == value })
	e.g.Expect(i).NotTo(Equal(-1), "no %s with %s %s among %v", function, key, value, e.calls[function])
	return e.calls[function][i]
}

// TestEachChangeReloads: each file that a manager is compiled from is below a path that Tilt watches, and what it builds is not.
func TestEachChangeReloads(t *testing.T) {
	for _, p := range entries(NewWithT(t)) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			context := filepath.Join(root(g), p.Config.Context)
			var watched []string
			for _, dep := range p.Config.LiveReloadDeps {
				path := filepath.Join(context, dep)
				_, err := os.Stat(path)
				g.Expect(err).NotTo(HaveOccurred())
				watched = append(watched, path)
			}
			covered := func(path string) bool {
				return slices.ContainsFunc(watched, func(w string) bool { return path == w || strings.HasPrefix(path, w+"/") })
			}
			g.Expect(covered(filepath.Join(context, ".tiltbuild", "bin", "manager"))).To(BeFalse(), "a build would start the next one")
			testinputs.Repository(t)
			list := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Dir,GoFiles,EmbedFiles,Standard,Module", p.Config.GoMain)
			list.Dir = context
			output, err := list.Output()
			g.Expect(err).NotTo(HaveOccurred())
			files := 0
			for decoder := json.NewDecoder(strings.NewReader(string(output))); decoder.More(); {
				var pkg struct {
					ImportPath, Name, Dir string
					GoFiles, EmbedFiles   []string
					Module                *struct{ Main bool }
				}
				g.Expect(decoder.Decode(&pkg)).To(Succeed())
				if pkg.Module == nil || !pkg.Module.Main {
					continue
				}
				if pkg.Dir == context {
					g.Expect(pkg.Name).To(Equal("main"))
				}
				for _, file := range slices.Concat(pkg.GoFiles, pkg.EmbedFiles) {
					files++
					g.Expect(covered(filepath.Join(pkg.Dir, file))).To(BeTrue(), "%s/%s is not among live_reload_deps", pkg.ImportPath, file)
				}
			}
			g.Expect(files).To(BeNumerically(">", 50))
		})
	}
}

// TestManifestsBuildFromAFreshClone: tilt-prepare and others run kustomize without our Makefile, so all that it reads is in git.
func TestManifestsBuildFromAFreshClone(t *testing.T) {
	g := NewWithT(t)
	list := exec.Command("git", "ls-files", "--others", "--ignored", "--exclude-standard", "config")
	list.Dir = root(g)
	output, err := list.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(string(output))).To(BeEmpty(), "ignored by git")
}
