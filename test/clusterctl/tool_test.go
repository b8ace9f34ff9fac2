package clusterctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/scale/cores"
)

// clusterctl is pinned with upstream's other programs.
var clusterctl = cores.Tool{
	Directory: "test/interop/upstream",
	Module:    "sigs.k8s.io/cluster-api",
	Package:   "sigs.k8s.io/cluster-api/cmd/clusterctl",
	Name:      "clusterctl",
}

var built struct {
	once sync.Once
	path string
	err  error
}

// build returns the path of clusterctl, which is compiled once and kept.
func build(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		root, err := controlplane.Root()
		if err != nil {
			built.err = err
			return
		}
		built.path, _, built.err = cores.BuildTool(context.WithoutCancel(t.Context()), root, clusterctl, io.Discard)
	})
	NewWithT(t).Expect(built.err).NotTo(HaveOccurred())
	return built.path
}

// person is a user at a shell, with clusterctl and kubectl.
type person struct {
	t *testing.T
	// dir is the working directory, with a release in out/release.
	dir string
	// environment is what was exported.
	environment []string
}

// newPerson has only programs, and a home directory.
func newPerson(t *testing.T, kubectl string) *person {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	programs := filepath.Join(dir, "bin")
	g.Expect(os.Mkdir(programs, 0o700)).To(Succeed())
	g.Expect(os.Symlink(build(t), filepath.Join(programs, "clusterctl"))).To(Succeed())
	if kubectl != "" {
		g.Expect(os.Symlink(kubectl, filepath.Join(programs, "kubectl"))).To(Succeed())
	}
	return &person{t, dir, append(childprocess.Collector(),
		"PATH="+programs+":/usr/local/bin:/usr/bin:/bin", "HOME="+filepath.Join(dir, "home"), "CLUSTERCTL_DISABLE_VERSIONCHECK=true",
		"MILLWRIGHT_RELEASE="+filepath.Join(dir, "out", "release"),
	)}
}

// try types commands up to the first that fails.
func (p *person) try(commands string) (output string, err error) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "bash", "-eu", "-o", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = p.dir, p.environment
	content, err := cmd.CombinedOutput()
	return string(content), err
}

// run types commands that must succeed.
func (p *person) run(commands string) string {
	p.t.Helper()
	output, err := p.try(commands)
	if err != nil {
		p.t.Fatalf("%v\n$ %s\n%s", err, commands, output)
	}
	return output
}

// established waits for definitions, by name or --all. kubectl fails on those that have no conditions yet, so it is called again.
func (p *person) established(definitions string) {
	p.t.Helper()
	p.run(`for i in $(seq 100); do
		! said=$(kubectl wait crd ` + definitions + ` --for=condition=Established --timeout=1m 2>&1) || exit 0
		case $said in *"accessor error"*) sleep 0.1;; *) break;; esac
	done
	echo "$said"; exit 1`)
}

// page types the commands of sections of a page.
func (p *person) page(name string, headings ...string) string {
	p.t.Helper()
	page := doccheck.Read(p.t, "docs/guides/"+name)
	var outputs strings.Builder
	for _, heading := range headings {
		outputs.WriteString(p.run(page.Commands(p.t, heading)))
	}
	return outputs.String()
}

// export sets a variable for the commands that follow.
func (p *person) export(name, value string) {
	p.environment = append(p.environment, fmt.Sprintf("%s=%s", name, value))
}

// write writes a file into the working directory.
func (p *person) write(name, content string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	NewWithT(p.t).Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	NewWithT(p.t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}
