package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// TestDirectoriesOfALayer: each directory is in it once, before what is in it: some runtimes refuse a file without.
func TestDirectoriesOfALayer(t *testing.T) {
	g := NewWithT(t)
	layer, err := layerOf(
		time.Unix(1750000000, 0),
		file{name: "a/b/c"},
		file{name: "a/b/d", mode: 0o444, content: []byte("d")},
		file{name: "a/e/f"},
		file{name: "g"},
	)
	g.Expect(err).NotTo(HaveOccurred())
	content, err := layer.Uncompressed()
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		names = append(names, header.Name)
		g.Expect(header.ModTime.Unix()).To(BeEquivalentTo(1750000000), header.Name)
	}
	g.Expect(names).To(Equal([]string{"a/", "a/b/", "a/b/c", "a/b/d", "a/e/", "a/e/f", "g"}))
}

// TestAuthorities: those that are trusted without conditions, and all of them.
func TestAuthorities(t *testing.T) {
	g := NewWithT(t)
	found := map[string]bool{}
	for rest := authorities(); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		found[string(block.Bytes)] = true
	}
	for root := range bundle.Roots() {
		g.Expect(found[string(root.Certificate)]).To(Equal(root.Constraint == nil))
	}
	g.Expect(len(found)).To(BeNumerically(">", 50))
}

// TestSizeOfAnImage: what is reported is what a node downloads, and more than may be is refused.
func TestSizeOfAnImage(t *testing.T) {
	g, from := NewWithT(t), programs(t)
	out := made(t, from)
	list, err := os.ReadFile(filepath.Join(out, "images.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	img, err := tarball.ImageFromPath(filepath.Join(out, "millwright-core-linux-"+runtime.GOARCH+".tar"), nil)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := img.RawConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	size := int64(len(config))
	layers, err := img.Layers()
	g.Expect(err).NotTo(HaveOccurred())
	for _, layer := range layers {
		content, err := layer.Compressed()
		g.Expect(err).NotTo(HaveOccurred())
		bytes, err := io.Copy(io.Discard, content)
		g.Expect(err).NotTo(HaveOccurred())
		size += bytes
	}
	one, _, _ := strings.Cut(string(list), "\n")
	g.Expect(strings.Fields(one)).To(ConsistOf(
		"registry.millwright.dev/millwright-core:dev", here, HavePrefix("sha256:"), fmt.Sprint(size)), "one image of one platform")
	allowed := func(most int64) error {
		return run([]string{"-programs", from, "-out", t.TempDir(), "-only", "core", "-platforms", here, "-created", "1750000000", "-max-size",
			fmt.Sprint(most)})
	}
	g.Expect(allowed(size)).To(Succeed())
	g.Expect(allowed(size - 1)).To(MatchError(ContainSubstring(fmt.Sprintf("has %d bytes for %s, which is more than %d", size, here, size-1))))
}

// TestDigestOfAllPlatforms: the list has the digest by which a manifest names the image on every platform: that of the index, as it is
// pushed.
func TestDigestOfAllPlatforms(t *testing.T) {
	g := NewWithT(t)
	out := made(t, programs(t))
	list, err := os.ReadFile(filepath.Join(out, "images.txt"))
	g.Expect(err).NotTo(HaveOccurred())
	pushed, err := layout.ImageIndexFromPath(filepath.Join(out, "millwright-core"))
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := pushed.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	index := manifest.Manifests[0]
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	g.Expect(lines).To(HaveLen(2))
	g.Expect(lines[1]).To(Equal(fmt.Sprintf("registry.millwright.dev/millwright-core:dev index %s %d", index.Digest, index.Size)))
}

// TestOnly: those that are named, and all when none is.
func TestOnly(t *testing.T) {
	g, from := NewWithT(t), programs(t)
	images := func(args ...string) (names []string) {
		out := t.TempDir()
		g.Expect(run(append([]string{"-programs", from, "-out", out, "-platforms", here}, args...))).To(Succeed())
		found, err := filepath.Glob(filepath.Join(out, "*", "index.json"))
		g.Expect(err).NotTo(HaveOccurred())
		for _, path := range found {
			names = append(names, filepath.Base(filepath.Dir(path)))
		}
		return names
	}
	g.Expect(images()).To(ConsistOf("millwright-core", "millwright-aws", "millwright-azure", "millwright-gcp", "millwright-cloudconfig"))
	g.Expect(images("-only", "aws,cloudconfig")).To(ConsistOf("millwright-aws", "millwright-cloudconfig"))
}

// TestWhatCannotBeWritten: each failure to write says what, and is one.
func TestWhatCannotBeWritten(t *testing.T) {
	from := programs(t)
	stem := "millwright-core-linux-" + runtime.GOARCH
	for occupied, message := range map[string]string{
		".":                "making the directory of the images",
		stem + ".tar":      "writing an archive",
		stem + ".cdx.json": "writing a bill of materials",
		"images.txt":       "writing the list of images",
	} {
		t.Run(occupied, func(t *testing.T) {
			g := NewWithT(t)
			out := filepath.Join(t.TempDir(), "out")
			if occupied == "." {
				g.Expect(os.WriteFile(out, nil, 0o600)).To(Succeed())
			} else {
				g.Expect(os.MkdirAll(filepath.Join(out, occupied, "x"), 0o755)).To(Succeed())
			}
			err := run([]string{"-programs", from, "-out", out, "-only", "core", "-platforms", here})
			g.Expect(err).To(MatchError(ContainSubstring(message)))
		})
	}
}

// TestABillThatIsCutOff: a disk that is full is noticed, though the file was created.
func TestABillThatIsCutOff(t *testing.T) {
	g, out := NewWithT(t), t.TempDir()
	g.Expect(os.Symlink("/dev/full", filepath.Join(out, "millwright-core-linux-"+runtime.GOARCH+".cdx.json"))).To(Succeed())
	err := run([]string{"-programs", programs(t), "-out", out, "-only", "core", "-platforms", here})
	g.Expect(err).To(MatchError(ContainSubstring("writing a bill of materials")))
}

// TestReplacedModules: the bill names what a program was compiled from, not what go.mod requires.
func TestReplacedModules(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.2", Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}},
		{Path: "example.com/b", Version: "v1.0.0"},
	}}
	var urls []string
	for _, c := range componentsOf(info, []*debug.Module{{Path: "example.com/b", Version: "v1.0.0"}}) {
		urls = append(urls, c.PackageURL)
	}
	NewWithT(t).Expect(urls).To(Equal([]string{"pkg:golang/example.com/b@v1.0.0", "pkg:golang/example.com/fork@v1.0.1", "pkg:golang/std@1.2"}))
}

// TestExitCode: make goes on by it alone.
func TestExitCode(t *testing.T) {
	for platforms, want := range map[string]int{here: 0, "linux": 1} {
		g := NewWithT(t)
		self, err := os.Executable()
		g.Expect(err).NotTo(HaveOccurred())
		cmd := exec.CommandContext(t.Context(), self, "-programs", programs(t), "-out", t.TempDir(), "-only", "core", "-platforms", platforms)
		cmd.Env = append(os.Environ(), asProgram+"=1")
		said, _ := cmd.CombinedOutput()
		g.Expect(cmd.ProcessState.ExitCode()).To(Equal(want), "%s", said)
		g.Expect(strings.HasPrefix(string(said), "images: ")).To(Equal(want == 1), "%s", said)
	}
}

// asProgram has the test program be the program that it tests.
const asProgram = "MILLWRIGHT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestPlatforms that are none.
func TestPlatforms(t *testing.T) {
	for _, platforms := range []string{"linux", "/amd64", "", "linux/amd64,", "linux/amd64/v1/x/y"} {
		_, err := parse([]string{"-platforms", platforms})
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("is not like linux/amd64")), platforms)
	}
	_, err := parse([]string{"-nonsense"})
	NewWithT(t).Expect(err).To(HaveOccurred())
}

// TestComponents: a checksum is named where there is one, and of the program that makes the images only what is in them.
func TestComponents(t *testing.T) {
	g := NewWithT(t)
	g.Expect(library("std", "1.2", "").Properties).To(BeNil())
	with := library("example.com/a", "v1.0.0", "h1:x")
	g.Expect(*with.Properties).To(ContainElement(HaveField("Value", "h1:x")))
	g.Expect(with.PackageURL).To(Equal("pkg:golang/example.com/a@v1.0.0"))
	modules := modulesOfImage()
	g.Expect(modules).To(HaveLen(1))
	g.Expect(modules[0].Path).To(Equal(authoritiesModule))
	g.Expect(bytes.Contains(authorities(), []byte("BEGIN CERTIFICATE"))).To(BeTrue())
}
