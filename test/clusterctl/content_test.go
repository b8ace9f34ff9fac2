package clusterctl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/controlplane"
)

// TestWhatAReleaseHas: each file that pages name is in it, from where it comes, and in its checksums.
func TestWhatAReleaseHas(t *testing.T) {
	r := newReleaser(t)
	root, err := controlplane.Root()
	r.Expect(err).NotTo(HaveOccurred())
	r.write("makes", makesImages)
	r.run("chmod +x makes")
	r.write("kustomize", "#!/bin/sh\necho \"# of $2\"\necho 'image: registry.millwright.dev/a:dev'\n") // As executable as before.
	r.run(`MAKE_IMAGES="$PWD/makes" REGISTRY=registry.example.com TAG=t ` + r.command + `v0.1.0 "$PWD/releases" && ` +
		strings.TrimSuffix(strings.Fields(r.command)[0], "release.sh") + `checksums.sh v0.1.0 "$PWD/releases"`)
	rendered := func(of string) string { return "# of config/" + of + "\nimage: registry.example.com/a:t\n" }
	metadata := ""
	want := map[string]string{
		"cluster-api/v0.1.0/core-components.yaml": rendered("core"), "cluster-api/v0.1.0/core-components-cert-manager.yaml": rendered("core/cert-manager"),
		"cluster-api/v0.1.0/core-components-without-webhooks.yaml": rendered("core/without-webhooks"), "cluster-api/v0.1.0/metadata.yaml": metadata,
		"bootstrap-millwright-cloudconfig/v0.1.0/bootstrap-components.yaml": rendered("bootstrap/cloudconfig"),
		"bootstrap-millwright-cloudconfig/v0.1.0/metadata.yaml":             metadata,
		"target/v0.1.0/target-components.yaml":                              rendered("target-cluster"),
		"images/v0.1.0/core.tar":                                            "x\n", "images/v0.1.0/images.txt": "x\n", "release-notes-v0.1.0.md": "",
	}
	for _, cloud := range []string{"aws", "azure", "gcp"} {
		dir := "infrastructure-millwright-" + cloud + "/v0.1.0/"
		want[dir+"infrastructure-components.yaml"], want[dir+"metadata.yaml"] = rendered("providers/"+cloud), metadata
		for _, template := range []string{"cluster-template.yaml", "cluster-template-kubeadm.yaml"} {
			want[dir+template] = r.source(root, "templates/"+cloud+"/"+template)
		}
	}
	for file, from := range map[string]string{
		"target/v0.1.0/kubeconfig-secret.yaml.tmpl": "samples/aws/kubeconfig-secret.yaml.tmpl", "target/v0.1.0/kubeadm.yaml": "samples/upstream/kubeadm.yaml",
		"target/v0.1.0/cluster-api-core.yaml": "samples/upstream/core.yaml", "clusterctl.yaml": "release/clusterctl.yaml",
		"cert-manager/v0.0.1/cert-manager.yaml": "release/cert-manager.yaml",
	} {
		want[file] = r.source(root, from)
	}
	var sums []string
	for _, line := range strings.Split(strings.TrimSpace(r.run("cd releases && cat checksums-v0.1.0.txt")), "\n") {
		sums = append(sums, strings.TrimPrefix(strings.Fields(line)[1], "./"))
	}
	r.Expect(sums).To(HaveLen(len(want)))
	r.Expect(strings.Fields(r.run(`find releases -type f -printf '%P\n'`))).To(HaveLen(len(want)+1), "and the checksums themselves")
	for file, content := range want {
		r.Expect(sums).To(ContainElement(file))
		if content != "" {
			r.Expect(r.run("cat releases/"+file)).To(Equal(content), file)
		}
	}
	notes := r.source(root, "../docs/releases/v0.1.md")
	_, body, _ := strings.Cut(notes, "\n")
	r.Expect(r.run("cat releases/release-notes-v0.1.0.md")).To(And(
		HavePrefix("# Millwright v0.1.0\n"), ContainSubstring(strings.TrimSpace(body)), ContainSubstring("- `registry.example.com/a:t`\n")))
}

// TestImagesOfAllManagers: a release has those of all managers for both platforms, and all compile for both; that of these tests has the
// images of one.
func TestImagesOfAllManagers(t *testing.T) {
	g := NewWithT(t)
	managers := []string{"./core", "./providers/aws", "./providers/azure", "./providers/gcp", "./bootstrap/cloudconfig"}
	said, err := atRoot(t, nil, "make", "--dry-run", "images")
	g.Expect(err).NotTo(HaveOccurred(), "%s", said)
	g.Expect(string(said)).To(And(
		ContainSubstring("for platform in linux/amd64 linux/arm64;"), ContainSubstring("-o $dir/ "+strings.Join(managers, " ")+";"),
		ContainSubstring("-platforms linux/amd64,linux/arm64"), ContainSubstring("-only core,aws,azure,gcp,cloudconfig")))
	for _, architecture := range []string{"amd64", "arm64"} {
		arguments := append([]string{"list", "-trimpath", "-export", "-f={{.Name}}"}, managers...) // Compiles, but does not link.
		said, err := atRoot(t, []string{"GOOS=linux", "GOARCH=" + architecture, "CGO_ENABLED=0"}, "go", arguments...)
		g.Expect(err).NotTo(HaveOccurred(), "%s: %s", architecture, said)
		g.Expect(strings.Fields(string(said))).To(HaveLen(len(managers)))
	}
}

// TestRenderedOnce: a directory that has been rendered to is rendered again only for another registry or tag.
func TestRenderedOnce(t *testing.T) {
	r := newReleaser(t)
	render := strings.Replace(r.command, "release.sh", "render.sh", 1) + `"$PWD/out"`
	for _, name := range []string{"a.io:t", "a.io:u", "b.io:u"} {
		registry, tag, _ := strings.Cut(name, ":")
		r.run(fmt.Sprintf("REGISTRY=%s TAG=%s %s", registry, tag, render))
		r.Expect(r.run("cat out/core/core-components.yaml")).To(Equal("image: " + registry + "/a:" + tag + "\n"))
	}
	same := `stat -c %Y.%Z out/core/core-components.yaml out/render.sum`
	before := r.run(same)
	r.run("REGISTRY=b.io TAG=u " + render)
	r.Expect(r.run(same)).To(Equal(before))
	r.run("echo changed >out/core/core-components.yaml && REGISTRY=b.io TAG=u " + render)
	r.Expect(r.run("cat out/core/core-components.yaml")).To(Equal("image: b.io/a:u\n"), "manual changes are overwritten")
}

// source is a file below config.
func (r *releaser) source(root, name string) string {
	content, err := os.ReadFile(filepath.Join(root, "config", name))
	r.Expect(err).NotTo(HaveOccurred())
	return string(content)
}
