package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"
)

// inIndex is the one image of a layout, and what its index is called.
func inIndex(g *WithT, path string) (v1.Descriptor, v1.Image) {
	outer, err := layout.ImageIndexFromPath(path)
	g.Expect(err).NotTo(HaveOccurred())
	manifest, err := outer.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	inner, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	img, err := index.Image(inner.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	return manifest.Manifests[0], img
}

// TestModes: all of it is root's, and user 65532 may read it and run the manager. Where tests run containers the files are the user's own,
// so that nothing else sees it.
func TestModes(t *testing.T) {
	g := NewWithT(t)
	_, img := inIndex(g, filepath.Join(made(t, programs(t)), "millwright-core"))
	content := mutate.Extract(img)
	defer content.Close()
	modes := map[string]int64{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect([]int{header.Uid, header.Gid}).To(Equal([]int{0, 0}), header.Name)
		modes[filepath.Clean(header.Name)] = header.Mode
		if header.Name == "etc/group" {
			group, err := io.ReadAll(archive)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(group)).To(ContainSubstring("\nnonroot:x:65532:\n"))
		}
	}
	g.Expect(modes).To(Equal(map[string]int64{
		"etc": 0o755, "etc/ssl": 0o755, "etc/ssl/certs": 0o755, "etc/passwd": 0o444, "etc/group": 0o444, certificates: 0o444, "manager": 0o555,
	}))
}

// TestKindsOfDocuments: registries and runtimes go by them, and pages by the labels.
func TestKindsOfDocuments(t *testing.T) {
	g := NewWithT(t)
	index, img := inIndex(g, filepath.Join(made(t, programs(t), "-tag", "v1.2.3"), "millwright-core"))
	g.Expect(index.MediaType).To(Equal(types.OCIImageIndex))
	g.Expect(index.Annotations).To(HaveKeyWithValue("org.opencontainers.image.ref.name", "v1.2.3"))
	manifest, err := img.Manifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.MediaType).To(Equal(types.OCIManifestSchema1))
	g.Expect(manifest.Config.MediaType).To(Equal(types.OCIConfigJSON))
	g.Expect(manifest.Layers).To(HaveLen(2))
	g.Expect(manifest.Layers).To(HaveEach(HaveField("MediaType", types.OCILayer)))
	config, err := img.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Config.Labels).To(Equal(map[string]string{
		"org.opencontainers.image.title": "millwright-core", "org.opencontainers.image.version": "v1.2.3", "org.opencontainers.image.source": source,
	}))
}

// TestAgainIntoTheSameDirectory: what the directory had before is no part of the new image.
func TestAgainIntoTheSameDirectory(t *testing.T) {
	g, from, out := NewWithT(t), programs(t), t.TempDir()
	for _, tag := range []string{"v1", "v2"} {
		g.Expect(run([]string{"-programs", from, "-out", out, "-only", "core", "-platforms", here, "-tag", tag})).To(Succeed())
	}
	blobs, err := filepath.Glob(filepath.Join(out, "millwright-core", "blobs", "sha256", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(blobs).To(HaveLen(5), "an index, a manifest, a config and two layers")
}

// TestWhatTheBillIsOf: the image, by the digest that a registry has for it.
func TestWhatTheBillIsOf(t *testing.T) {
	g := NewWithT(t)
	out := made(t, programs(t))
	_, img := inIndex(g, filepath.Join(out, "millwright-core"))
	digest, err := img.Digest()
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(out, "millwright-core-linux-"+runtime.GOARCH+".cdx.json"))
	g.Expect(err).NotTo(HaveOccurred())
	bom := &cdx.BOM{}
	g.Expect(json.Unmarshal(content, bom)).To(Succeed())
	g.Expect(bom.Metadata.Timestamp).To(Equal(time.Unix(1750000000, 0).UTC().Format(time.RFC3339)))
	g.Expect(bom.Metadata.Component.Version).To(Equal(digest.String()))
	g.Expect(*bom.Metadata.Component.Hashes).To(ConsistOf(cdx.Hash{Algorithm: cdx.HashAlgoSHA256, Value: digest.Hex}))
}

// TestLimit: an image has at most 30 MB.
func TestLimit(t *testing.T) {
	o, err := parse(nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(o.maxSize).To(BeEquivalentTo(30_000_000))
}
