package controlplane

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestLockIsHeldByOneAtATime(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "lock")
	var out bytes.Buffer
	unlock, err := lock(context.Background(), path, &out)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.String()).To(BeEmpty())

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = lock(ctx, path, &out)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Expect(out.String()).To(ContainSubstring("Waiting for another build"))

	unlock()
	unlock, err = lock(context.Background(), path, &out)
	g.Expect(err).NotTo(HaveOccurred())
	unlock()
}

func TestHashDistinguishesDirectories(t *testing.T) {
	g := NewWithT(t)
	write := func(name, content string) string {
		dir := t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
		hash, err := hashDirectory(dir)
		g.Expect(err).NotTo(HaveOccurred())
		return hash
	}
	first := write("a", "1")
	g.Expect(write("a", "1")).To(Equal(first), "wherever the directory is")
	g.Expect(write("a", "2")).NotTo(Equal(first))
	g.Expect(write("b", "1")).NotTo(Equal(first))
}

func TestBuildIsSkippedWhenComplete(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(CacheEnv, t.TempDir())
	t.Setenv(AssetsEnv, "")
	b, err := newBuild()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.missing(programs)).To(Equal(programs))
	g.Expect(os.MkdirAll(b.target, 0o700)).To(Succeed())
	for i, p := range programs {
		g.Expect(b.missing(programs)).To(Equal(programs[i:]))
		_, err := Assets()
		g.Expect(err).To(MatchError(ContainSubstring("run `make controlplane`")), "before %s is there", p.name)
		g.Expect(os.WriteFile(filepath.Join(b.target, p.name), nil, 0o600)).To(Succeed())
	}
	var out bytes.Buffer
	g.Expect(Build(t.Context(), &out, false)).To(Equal(b.target))
	g.Expect(Assets()).To(Equal(b.target), "a control plane runs without kubectl")
	g.Expect(b.missing([]program{kubectl})).To(Equal([]program{kubectl}))
	g.Expect(os.WriteFile(filepath.Join(b.target, "kubectl"), nil, 0o600)).To(Succeed())
	g.Expect(Build(t.Context(), &out, true)).To(Equal(b.target))
	g.Expect(out.String()).To(BeEmpty())
}

// TestBuildAddsWhatIsMissing: what is there stays as it is, since it may be running.
func TestBuildAddsWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	staging := t.TempDir()
	b := &build{target: filepath.Join(t.TempDir(), "target")}
	write := func(p program, content string) {
		g.Expect(os.WriteFile(filepath.Join(staging, p.name), []byte(content), 0o600)).To(Succeed())
	}
	for _, p := range programs {
		write(p, "first")
	}
	g.Expect(b.install(staging, programs)).To(Succeed())
	g.Expect(b.missing(programs)).To(BeEmpty())
	before, err := os.Stat(filepath.Join(b.target, "etcd"))
	g.Expect(err).NotTo(HaveOccurred())

	write(kubectl, "second")
	g.Expect(b.install(staging, []program{kubectl})).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(b.target, "kubectl"))).To(BeEquivalentTo("second"))
	after, err := os.Stat(filepath.Join(b.target, "etcd"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.SameFile(before, after)).To(BeTrue())
}

func TestVersionFlagsNameTheRequiredKubernetes(t *testing.T) {
	g := NewWithT(t)
	flags := (&build{version: "v1.36.3"}).ldflags()
	for _, want := range []string{
		"k8s.io/component-base/version.gitVersion=v1.36.3",
		"k8s.io/component-base/version.gitMajor=1 ", "k8s.io/component-base/version.gitMinor=36 ",
	} {
		g.Expect(flags).To(ContainSubstring(want))
	}
}
