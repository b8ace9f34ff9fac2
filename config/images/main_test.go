package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"
)

var here = "linux/" + runtime.GOARCH

// programs is a directory with the test itself in place of each manager.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	platform := filepath.Join(dir, strings.ReplaceAll(here, "/", "_"))
	g := NewWithT(t)
	g.Expect(os.Mkdir(platform, 0o755)).To(Succeed())
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	for _, m := range managers {
		g.Expect(os.Symlink(self, filepath.Join(platform, m.program))).To(Succeed())
	}
	return dir
}

func made(t *testing.T, programs string, more ...string) string {
	t.Helper()
	out := t.TempDir()
	NewWithT(t).Expect(run(append([]string{"-programs", programs, "-out", out, "-only", "core", "-platforms", here, "-created", "1750000000"},
		more...))).To(Succeed())
	return out
}

func TestTheSameProgramIsTheSameImage(t *testing.T) {
	g := NewWithT(t)
	from := programs(t)
	first, second := made(t, from), made(t, from)
	for _, file := range []string{
		"images.txt", "millwright-core/index.json", "millwright-core-linux-" + runtime.GOARCH + ".tar",
		"millwright-core-linux-" + runtime.GOARCH + ".cdx.json",
	} {
		one, err := os.ReadFile(filepath.Join(first, file))
		g.Expect(err).NotTo(HaveOccurred())
		other, err := os.ReadFile(filepath.Join(second, file))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(one) == string(other)).To(BeTrue(), file)
	}
}

func TestWhatIsInAnImage(t *testing.T) {
	g := NewWithT(t)
	out := made(t, programs(t), "-registry", "example.com/team", "-tag", "v1.2.3")
	img, err := tarball.ImageFromPath(filepath.Join(out, "millwright-core-linux-"+runtime.GOARCH+".tar"), nil)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := img.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Config.User).To(Equal("65532:65532"))
	g.Expect(config.Config.Entrypoint).To(Equal([]string{"/manager"}))
	g.Expect(config.Config.Env).To(BeEmpty())
	g.Expect(config.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.version", "v1.2.3"))
	g.Expect(config.Created.UTC()).To(Equal(time.Unix(1750000000, 0).UTC()))
	g.Expect(config.Platform().String()).To(Equal(here))

	files := extracted(g, img)
	g.Expect(files).To(HaveLen(4))
	g.Expect(files).To(HaveKey("manager"))
	g.Expect(string(files["etc/passwd"])).To(ContainSubstring("nonroot:x:65532:65532:"))
	pool := x509.NewCertPool()
	g.Expect(pool.AppendCertsFromPEM(files[certificates])).To(BeTrue())
	blocks := 0
	for rest := files[certificates]; ; blocks++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		_, err := x509.ParseCertificate(block.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(blocks).To(BeNumerically(">", 80), "of Mozilla's list")

	list, err := os.ReadFile(filepath.Join(out, "images.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(list)).To(HavePrefix("example.com/team/millwright-core:v1.2.3 " + here + " "))
	index := inLayout(g, filepath.Join(out, "millwright-core"))
	g.Expect(index.Manifests).To(HaveLen(1))
	g.Expect(string(list)).To(ContainSubstring(index.Manifests[0].Digest.String()))
	g.Expect(index.Manifests[0].Platform.String()).To(Equal(here))
}

func inLayout(g *WithT, path string) *v1.IndexManifest {
	outer, err := layout.ImageIndexFromPath(path)
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := outer.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Manifests).To(HaveLen(1))
	g.Expect(manifest.Manifests[0].Annotations).To(HaveKeyWithValue("io.containerd.image.name", "example.com/team/millwright-core:v1.2.3"))
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	inner, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	return inner
}

func extracted(g *WithT, img v1.Image) map[string][]byte {
	dir, err := os.MkdirTemp("", "image-")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = os.RemoveAll(dir) }()
	content := mutate.Extract(img)
	defer content.Close()
	untar := exec.Command("tar", "-x", "-C", dir)
	untar.Stdin = content
	g.Expect(untar.Run()).To(Succeed())
	files := map[string][]byte{}
	g.Expect(filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()&0o222).To(BeZero(), "%s can be written to", path)
		file, err := os.Open(path)
		g.Expect(err).NotTo(HaveOccurred())
		defer file.Close()
		name, err := filepath.Rel(dir, path)
		g.Expect(err).NotTo(HaveOccurred())
		files[name], err = io.ReadAll(file)
		return err
	})).To(Succeed())
	return files
}

// TestBillOfMaterials: it names what the program is linked from, the standard library and the certificate authorities.
func TestBillOfMaterials(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(made(t, programs(t)), "millwright-core-linux-"+runtime.GOARCH+".cdx.json"))
	g.Expect(err).NotTo(HaveOccurred())
	bom := &cdx.BOM{}
	g.Expect(json.Unmarshal(content, bom)).To(Succeed())
	g.Expect(bom.Metadata.Component.Name).To(Equal("registry.millwright.dev/millwright-core:dev"))
	var urls []string
	for _, c := range *bom.Components {
		urls = append(urls, c.PackageURL)
	}
	g.Expect(urls).To(ContainElements(
		HavePrefix("pkg:golang/github.com/google/go-containerregistry@v"), // The program is this test.
		HavePrefix("pkg:golang/"+authoritiesModule+"@v"),
		"pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"),
	))
}

// TestRefusals: what would be no image that works is none.
func TestRefusals(t *testing.T) {
	foreign := programs(t)
	NewWithT(t).Expect(os.Rename(filepath.Join(foreign, "linux_"+runtime.GOARCH), filepath.Join(foreign, "linux_riscv64"))).To(Succeed())
	text := t.TempDir()
	g := NewWithT(t)
	g.Expect(os.Mkdir(filepath.Join(text, "linux_"+runtime.GOARCH), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(text, "linux_"+runtime.GOARCH, "core"), []byte("#!/bin/sh"), 0o755)).To(Succeed())
	for name, test := range map[string]struct {
		args    []string
		message string
	}{
		"another processor":    {[]string{"-programs", foreign, "-platforms", "linux/riscv64"}, `is a program for "` + runtime.GOARCH + `", not for "riscv64"`},
		"no program":           {[]string{"-programs", t.TempDir(), "-platforms", here}, "reading a program"},
		"a script":             {[]string{"-programs", text, "-platforms", here}, "is not a program of Go"},
		"a platform":           {[]string{"-platforms", "linux"}, `"linux" is not like linux/amd64`},
		"a name of upper case": {[]string{"-programs", programs(t), "-platforms", here, "-registry", "example.com/Team"}, "give no name of an image"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(run(append([]string{"-out", t.TempDir(), "-only", "core"}, test.args...))).To(MatchError(ContainSubstring(test.message)))
		})
	}
}
