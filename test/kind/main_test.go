package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"millwright.dev/test/testenv"
)

// recorded are clusters that exist only by name.
type recorded struct {
	names []string
	calls []string
	nodes []nodes.Node
	err   error
	// creating, when set, gets a value once Create has begun, which ends when deleted is closed.
	creating, deleted chan struct{}
	// half is true if there is no kubeconfig yet.
	half bool
}

func (r *recorded) KubeConfig(string, bool) (string, error) {
	if r.half {
		return "", errors.New("no admin.conf")
	}
	return "", nil
}

func (r *recorded) Create(name string, options ...cluster.CreateOption) error {
	r.calls = append(r.calls, fmt.Sprintf("create %s with %d options", name, len(options)))
	if r.creating != nil {
		close(r.creating)
		<-r.deleted
	}
	return r.err
}

func (r *recorded) Delete(name, _ string) error {
	r.calls = append(r.calls, "delete "+name)
	if r.deleted != nil && len(r.calls) == 2 {
		close(r.deleted)
	}
	return r.err
}

func (r *recorded) List() ([]string, error) { return r.names, nil }

func (r *recorded) ListInternalNodes(string) ([]nodes.Node, error) { return r.nodes, nil }

// node takes what is loaded, as one of kind with containerd would.
type node struct {
	nodes.Node
	loaded []string
}

func (n *node) String() string { return "millwright-control-plane" }

func (n *node) Command(program string, args ...string) kindexec.Cmd {
	return &command{node: n, line: strings.Join(append([]string{program}, args...), " ")}
}

type command struct {
	node   *node
	line   string
	stdin  io.Reader
	stdout io.Writer
}

func (c *command) Run() error {
	switch {
	case strings.HasPrefix(c.line, "containerd config dump"):
		_, err := io.WriteString(
			c.stdout,
			"version = 2\n[plugins]\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\nsnapshotter = \"overlayfs\"\n",
		)
		return err
	case strings.HasPrefix(c.line, "ctr ") && strings.Contains(c.line, " images import "):
		content, err := io.ReadAll(c.stdin)
		c.node.loaded = append(c.node.loaded, string(content))
		return err
	}
	return errors.Errorf("no node has %s", c.line)
}

func (c *command) SetEnv(...string) kindexec.Cmd { return c }
func (c *command) SetStdin(r io.Reader) kindexec.Cmd {
	c.stdin = r
	return c
}
func (c *command) SetStdout(w io.Writer) kindexec.Cmd {
	c.stdout = w
	return c
}
func (c *command) SetStderr(io.Writer) kindexec.Cmd { return c }

// TestUpAndDown: a cluster is created once, and kind's errors are returned to the user.
func TestUpAndDown(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}
	o := &options{name: "a", out: out}
	p := &recorded{names: []string{"b"}}
	g.Expect(o.up(t.Context(), p)).To(Succeed())
	g.Expect(p.calls).To(ConsistOf("create a with 5 options"))
	g.Expect(out.String()).To(ContainSubstring("kubectl --context kind-a"))
	p.names = append(p.names, "a")
	g.Expect(o.up(t.Context(), p)).To(Succeed())
	g.Expect(p.calls).To(HaveLen(1), "there is one already")
	g.Expect(o.down(p)).To(Succeed())
	g.Expect(p.calls[1]).To(Equal("delete a"))
	failing := &recorded{err: errors.New("no space left")}
	g.Expect(o.up(t.Context(), failing)).To(MatchError("making cluster a: no space left"))
}

// TestInterrupted: the containers of a cluster that is being created continue to run, and would count as a cluster the next time.
func TestInterrupted(t *testing.T) {
	g := NewWithT(t)
	ctx, interrupt := context.WithCancel(t.Context())
	p := &recorded{creating: make(chan struct{}), deleted: make(chan struct{})}
	t.Cleanup(interrupt)
	go func() {
		<-p.creating
		interrupt()
	}()
	out := &bytes.Buffer{}
	g.Expect((&options{name: "a", out: out}).up(ctx, p)).To(MatchError("interrupted: cluster a has been removed"))
	g.Expect(p.calls).To(Equal([]string{"create a with 5 options", "delete a", "delete a"}), "also what was created after the first")
	g.Expect(out.String()).NotTo(ContainSubstring("is ready"))
}

// TestIncomplete: a cluster whose creation was killed is none.
func TestIncomplete(t *testing.T) {
	g := NewWithT(t)
	p := &recorded{names: []string{"a"}, half: true}
	g.Expect((&options{name: "a", out: io.Discard}).up(t.Context(), p)).
		To(MatchError(And(ContainSubstring("is incomplete"), ContainSubstring("kind-down"))))
	g.Expect(p.calls).To(BeEmpty(), "another process may be creating it now")
}

// TestLoad loads each archive of this computer's platform into each node, by kind's library.
func TestLoad(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for _, name := range []string{"millwright-core-linux-" + runtime.GOARCH, "millwright-aws-linux-" + runtime.GOARCH,
		"millwright-core-linux-other"} {
		g.Expect(os.WriteFile(filepath.Join(dir, name+".tar"), []byte(name), 0o600)).To(Succeed())
	}
	one, other := &node{}, &node{}
	p := &recorded{names: []string{"a"}, nodes: []nodes.Node{one, other}}
	o := &options{name: "a", images: dir, out: io.Discard}
	g.Expect(o.load(p)).To(Succeed())
	want := ConsistOf("millwright-aws-linux-"+runtime.GOARCH, "millwright-core-linux-"+runtime.GOARCH)
	g.Expect(one.loaded).To(want)
	g.Expect(other.loaded).To(want)
	g.Expect((&options{name: "b", images: dir}).load(p)).To(MatchError(ContainSubstring("create it with `make kind-up`")))
	g.Expect((&options{name: "a", images: t.TempDir()}).load(p)).To(MatchError(ContainSubstring("run `make images`")))
}

// TestWhyKindCannotRun: what is missing is named, in the engine's own words where it has any.
func TestWhyKindCannotRun(t *testing.T) {
	having := func(names ...string) func(string) (string, error) {
		return func(name string) (string, error) {
			if strings.Contains(strings.Join(names, " "), name) {
				return "/usr/bin/" + name, nil
			}
			return "", exec.ErrNotFound
		}
	}
	saying := func(text string, err error) func(string, ...string) (string, error) {
		return func(string, ...string) (string, error) { return text, err }
	}
	hangsBut := func(working string) func(string, ...string) (string, error) {
		return func(engine string, _ ...string) (string, error) {
			if engine == working {
				return "5.0", nil
			}
			return "", errors.New("no answer within 10s")
		}
	}
	failure := errors.New("exit status 1")
	for name, test := range map[string]struct {
		look         func(string) (string, error)
		ask          func(string, ...string) (string, error)
		want, engine string
	}{
		"nothing installed": {having(), saying("", nil), "none of docker, podman, nerdctl is installed", ""},
		"no daemon":         {having("docker"), saying("Cannot connect to the Docker daemon", failure), "docker does not work: Cannot connect to the Docker daemon", ""},
		"hangs":             {having("docker"), saying("", errors.New("no answer within 10s")), "docker does not work: no answer within 10s", ""},
		"one of two":        {having("docker", "podman"), saying("broken", failure), "docker does not work: broken; podman does not work: broken", ""},
		"works":             {having("podman"), saying("5.0", nil), "", "podman"},
		"first is off":      {having("docker", "podman", "nerdctl"), hangsBut("podman"), "", "podman"},
		"last works":        {having("docker", "podman", "nerdctl"), hangsBut("nerdctl"), "", "nerdctl"},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := availableWith(test.look, test.ask)
			if test.want == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				NewWithT(t).Expect(engine).To(Equal(test.engine), "not the first that is installed")
				NewWithT(t).Expect(providers).To(HaveKey(engine))
				return
			}
			NewWithT(t).Expect(err).To(MatchError(HavePrefix(test.want)))
		})
	}
	g := NewWithT(t)
	g.Expect(forbidden("docker", saying("operation not permitted", failure))).To(MatchError(
		And(HavePrefix("docker runs no privileged container of kindest/node:"), ContainSubstring("operation not permitted"))))
	g.Expect(forbidden("docker", saying("", nil))).To(Succeed())
}

// TestAnEngineThatHangs is not waited for.
func TestAnEngineThatHangs(t *testing.T) {
	_, err := askFor(1, "sleep", "60")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no answer within")))
}

// TestCommandLine: an unknown command is named before an engine is looked for.
func TestCommandLine(t *testing.T) {
	g := NewWithT(t)
	g.Expect(run(t.Context(), nil, io.Discard)).To(MatchError("give up, load or down"))
	g.Expect(run(t.Context(), []string{"sideways"}, io.Discard)).To(MatchError(ContainSubstring(`no command "sideways"`)))
	g.Expect(run(t.Context(), []string{"load", "-images", t.TempDir()}, io.Discard)).To(MatchError(ContainSubstring("make images")))
}

// TestNodeImage is of the Kubernetes minor of go.mod and pinned by its digest; the Makefile calls the program.
func TestNodeImage(t *testing.T) {
	g := NewWithT(t)
	module, err := os.ReadFile(filepath.Join(testenv.Root(), "go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	minor := regexp.MustCompile(`k8s\.io/client-go v0\.(\d+)\.`).FindStringSubmatch(string(module))[1]
	g.Expect(nodeImage).To(MatchRegexp(`^kindest/node:v1\.` + minor + `\.\d+@sha256:[0-9a-f]{64}$`))
	for target, want := range map[string]string{"kind-up": "up -name", "kind-load": "load -name", "kind-down": "down -name"} {
		dry := exec.CommandContext(context.Background(), "make", "--dry-run", target, "KIND_NAME=x")
		dry.Dir = testenv.Root()
		output, err := dry.Output()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(output)).To(ContainSubstring("./test/kind " + want + ` "x"`))
	}
}

// TestImagesOfTestsAreAside: those that a user has built, for other platforms and with other names, stay as they are.
func TestImagesOfTestsAreAside(t *testing.T) {
	g := NewWithT(t)
	dry := exec.CommandContext(t.Context(), "make", "--dry-run", "test-images")
	dry.Dir, dry.Env = testenv.Root(), append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
	said, err := dry.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), "%s", said)
	g.Expect(string(said)).To(ContainSubstring("-out out/test-images "))
	g.Expect(string(said)).NotTo(MatchRegexp(`\bout/images`))
}
