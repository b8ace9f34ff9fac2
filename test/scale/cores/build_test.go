package cores

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/controlplane"
)

// Another go.mod or go.sum is another binary; the same ones are not built again.
func TestBuildKey(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	module := t.TempDir()
	write := func(name, content string) {
		g.Expect(os.WriteFile(filepath.Join(module, name), []byte(content), 0o600)).To(Succeed())
	}
	write("go.mod", "module example.com/m\n\ngo 1.26.0\n")
	write("go.sum", "")
	first, err := buildKey(ctx, module)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(buildKey(ctx, module)).To(Equal(first))
	write("go.sum", "example.com/x v1.0.0 h1:abc=\n")
	g.Expect(buildKey(ctx, module)).NotTo(Equal(first))
	_, err = buildKey(ctx, t.TempDir())
	g.Expect(err).To(MatchError(ContainSubstring("reading the module of upstream's core")))
}

// What a build of its own version costs minutes is found where the module and the toolchain say.
func TestUpstreamVersion(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	root, err := controlplane.Root()
	g.Expect(err).NotTo(HaveOccurred())
	version, err := goOutput(ctx, filepath.Join(root, upstreamModule), "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/cluster-api")
	g.Expect(err).NotTo(HaveOccurred())
	ours, err := goOutput(ctx, root, "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/cluster-api")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(Equal(ours), "both cores speak the same version of the API")
}

func TestGoBuildLeavesTheOldBinaryWhenItFails(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	dir := t.TempDir()
	target := filepath.Join(dir, "core")
	g.Expect(os.WriteFile(target, []byte("old"), 0o600)).To(Succeed())
	g.Expect(goBuild(ctx, dir, target, "./none", t.Output())).To(MatchError(ContainSubstring("go build")))
	g.Expect(os.ReadFile(target)).To(BeEquivalentTo("old"))
	g.Expect(filepath.Glob(filepath.Join(dir, ".building-*"))).To(BeEmpty())
}

func TestEnsureCertificate(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "webhook")
	g.Expect(EnsureCertificate(dir)).To(Succeed())
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pair.Leaf.NotAfter).To(BeTemporally(">", time.Now()))
	before, err := os.ReadFile(filepath.Join(dir, "tls.crt"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(EnsureCertificate(dir)).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(dir, "tls.crt"))).To(Equal(before), "a restarted core keeps its certificate")
}

func TestStartReportsACoreThatEnds(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := Start(ctx, Core{Name: Ours, Path: "/bin/false"}, Options{Dir: t.TempDir()})
	g.Expect(err).To(MatchError(And(ContainSubstring("the ours core exited while starting"), ContainSubstring("ours.log"))))
}
