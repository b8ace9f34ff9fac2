// Package commandline_test runs the programs of the managers with good and bad command lines.
package commandline_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"

	"millwright.dev/test/testenv"
	"millwright.dev/test/testinputs"
)

// programs are the managers with the directories of their mains.
var programs = map[string]string{
	"millwright-core": "./core", "millwright-aws": "./providers/aws", "millwright-azure": "./providers/azure", "millwright-gcp": "./providers/gcp", "millwright-cloudconfig": "./bootstrap/cloudconfig",
}

// timeout bounds one run of a program.
const timeout = time.Minute

// ended is how a program exited.
type ended struct {
	code           int
	stdout, stderr string
}

// built is where the programs are, which all tests only run.
var built struct {
	once      sync.Once
	directory string
	err       error
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built.directory)
	os.Exit(code)
}

// build returns the directory of the programs, which are linked once.
func build(t *testing.T) string {
	t.Helper()
	built.once.Do(func() { built.err = link(t) })
	NewWithT(t).Expect(built.err).NotTo(HaveOccurred())
	return built.directory
}

// link builds the programs with the linker flags of the Makefile.
func link(t *testing.T) (err error) {
	testinputs.Repository(t)
	built.directory, err = os.MkdirTemp("", "commandline")
	if err != nil {
		return errors.Wrap(err, "creating a directory for programs")
	}
	const version = "millwright.dev/contracts/controller/manager."
	printed := exec.CommandContext(t.Context(), "make", "-n", "build", "VERSION=v9.8.7", "COMMIT=abcdef")
	printed.Dir = testenv.Root()
	script, err := printed.CombinedOutput()
	if err != nil {
		return errors.Wrapf(err, "make: %s", script)
	}
	flags := regexp.MustCompile(`-ldflags '([^']*)' -o bin/ `).FindSubmatch(script)
	if flags == nil || !strings.Contains(string(flags[1]), version) {
		return errors.Errorf("make build has no linker flags with %s: %s", version, script)
	}
	for name, main := range programs {
		command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", string(flags[1]),
			"-o", filepath.Join(built.directory, name), main)
		command.Dir = testenv.Root()
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			return errors.Wrapf(err, "go build: %s", output)
		}
	}
	return nil
}

// execute runs a program until it exits, without an API server.
func execute(t *testing.T, path string, arguments ...string) ended {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), path, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/does/not/exist"}
	command.WaitDelay = timeout
	timer := time.AfterFunc(timeout, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	_ = command.Run()
	return ended{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// TestCommandLines runs each program with each command line.
func TestCommandLines(t *testing.T) {
	directory := build(t)
	lines := []struct {
		name      string
		arguments []string
		code      int
		// stdout and stderr are patterns of all that is printed.
		stdout, stderr string
	}{
		{"version", []string{"--version"}, 0, `^NAME v9\.8\.7 \(commit abcdef, ` + regexp.QuoteMeta(runtime.Version()) + `, [a-z]+/[a-z0-9]+\)\n$`, `^$`},
		{"help", []string{"--help"}, 0, `(?s)^NAME: .*--leader-elect.*--kubeconfig|^NAME: .*--kubeconfig.*--leader-elect`, `^$`},
		{"unknown flag", []string{"--no-such-flag"}, 2, `^$`, `^NAME: unknown flag: --no-such-flag\nSee --help for the flags\.\n$`},
		{"value of another type", []string{"--sync-period=soon"}, 2, `^$`, `^NAME: invalid argument "soon" for "--sync-period" flag.*\nSee --help`},
		{"unexpected argument", []string{"--v=3", "run", "now"}, 2, `^$`, `^NAME: unexpected argument "run now": there are only flags\nSee --help`},
		{"unknown log format", []string{"--logging-format=xml"}, 2, `^$`, `^NAME: applying the flags of the log: .*xml.*\nSee --help`},
		{"unknown TLS version", []string{"--tls-min-version=VersionTLS99"}, 2, `^$`, `^NAME: reading --tls-min-version: .*\nSee --help`},
		{"lease that is lost at once", []string{"--leader-elect", "--leader-elect-lease-duration=5s"}, 2, `^$`, `^NAME: --leader-elect-lease-duration \(5s\) must be at least`},
		{"no API server", nil, 1, `^$`, `(?s)"Starting" manager="NAME" version="v9\.8\.7" commit="abcdef".*"The manager has failed" err="finding the API server: set --kubeconfig`},
	}
	for name := range programs {
		for _, line := range lines {
			t.Run(name+"/"+line.name, func(t *testing.T) {
				g := NewWithT(t)
				got := execute(t, filepath.Join(directory, name), line.arguments...)
				g.Expect(got.code).To(Equal(line.code), "%s%s", got.stdout, got.stderr)
				g.Expect(got.stdout).To(MatchRegexp(strings.ReplaceAll(line.stdout, "NAME", name)))
				g.Expect(got.stderr).To(MatchRegexp(strings.ReplaceAll(line.stderr, "NAME", name)))
			})
		}
		t.Run(name+"/logs in JSON", func(t *testing.T) {
			g := NewWithT(t)
			got := execute(t, filepath.Join(directory, name), "--logging-format=json", "--webhook-cert-dir=/x")
			g.Expect(got.code).To(Equal(1))
			for line := range strings.Lines(got.stderr) {
				g.Expect(json.Unmarshal([]byte(line), &map[string]any{})).To(Succeed(), line)
			}
		})
	}
	t.Run("flags without effect", func(t *testing.T) {
		g := NewWithT(t)
		got := execute(t, filepath.Join(directory, "millwright-core"), "--machinepool-concurrency=3")
		g.Expect(got.stderr).To(ContainSubstring(`"This flag has no effect: remove it" flag="--machinepool-concurrency"`))
		g.Expect(execute(t, filepath.Join(directory, "millwright-core"), "--help").stdout).NotTo(ContainSubstring("machinepool-concurrency"))
	})
	t.Run("equal flags", func(t *testing.T) { equalFlags(t, directory) })
}

// equalFlags checks that a flag which several managers have is described alike, with its type and default. The flags of
// target clusters belong to managers that connect to them, and are as many as each needs.
func equalFlags(t *testing.T, directory string) {
	flag := regexp.MustCompile(`(?m)^ +(?:-\w, )?(--[a-z-]+)(?: [a-zA-Z0-9]+)? .*$`)
	seen, own := map[string]string{}, map[string]int{}
	for name := range programs {
		for _, found := range flag.FindAllStringSubmatch(execute(t, filepath.Join(directory, name), "--help").stdout, -1) {
			described := strings.Join(strings.Fields(found[0]), " ")
			if strings.HasPrefix(found[1], "--launch") || strings.HasPrefix(found[1], "--inventory-") || found[1] == "--instance-status-interval" {
				// Rates of launches and intervals of polling differ between clouds.
				described, _, _ = strings.Cut(described, " (default")
			}
			own[found[1]]++
			if before, ok := seen[found[1]]; ok && !strings.HasPrefix(found[1], "--clustercache-") && found[1] != "--machine-concurrency" {
				NewWithT(t).Expect(described).To(Equal(before))
			}
			seen[found[1]] = described
		}
	}
	g := NewWithT(t)
	for _, name := range []string{
		"--leader-elect", "--leader-elect-resource-namespace", "--sync-period", "--namespace", "--watch-filter", "--health-addr",
		"--diagnostics-address", "--logging-format", "--kube-api-qps", "--profiler-address", "--contention-profiling", "--kubeconfig", "--v",
	} {
		g.Expect(own).To(HaveKeyWithValue(name, len(programs)), "managers with %s", name)
	}
}
