package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// program is one binary of the nested module.
type program struct {
	name, pkg string
}

// programs are what a control plane and its machines run.
var programs = []program{
	{"etcd", "./etcd"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"hollow-kubelet", "./hollow-kubelet"},
}

// kubectl has 192 packages of its own. A demo that ends by itself does not need it.
var kubectl = program{"kubectl", "k8s.io/kubernetes/cmd/kubectl"}

// Build builds the control plane's programs into the cache directory, those that are not there, and returns
// the directory. Builds at the same time wait for each other; each program appears when it is complete.
// The first build takes minutes: out shows its progress.
func Build(ctx context.Context, out io.Writer, withKubectl bool) (string, error) {
	wanted := programs
	if withKubectl {
		wanted = append(slices.Clone(programs), kubectl)
	}
	b, err := newBuild()
	if err != nil {
		return "", err
	}
	if len(b.missing(wanted)) == 0 {
		return b.target, nil
	}
	parent := filepath.Dir(b.target)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return "", errors.Wrap(err, "creating the cache directory")
	}
	unlock, err := lock(ctx, filepath.Join(parent, ".lock"), out)
	if err != nil {
		return "", err
	}
	defer unlock()
	missing := b.missing(wanted)
	if len(missing) == 0 {
		return b.target, nil
	}
	return b.target, b.run(ctx, parent, missing, out)
}

func (b *build) run(ctx context.Context, parent string, missing []program, out io.Writer) error {
	staging, err := os.MkdirTemp(parent, ".building-")
	if err != nil {
		return errors.Wrap(err, "creating a directory to build in")
	}
	defer func() { _ = os.RemoveAll(staging) }()
	begin := time.Now()
	fmt.Fprintf(out, "Building %s of Kubernetes %s from Go modules, once; this takes some minutes.\n", names(missing), b.version)
	if err := b.compile(ctx, staging, missing, out); err != nil {
		return err
	}
	if err := b.install(staging, missing); err != nil {
		return err
	}
	fmt.Fprintf(out, "Built %s in %s: %s\n", names(missing), time.Since(begin).Round(time.Second), b.target)
	return nil
}

// install moves the programs into place one by one: those that are there may be running, and stay.
func (b *build) install(staging string, built []program) error {
	// Other users may run the programs, whatever the umask.
	if err := os.MkdirAll(b.target, 0o755); err != nil {
		return errors.Wrap(err, "creating the directory of the programs")
	}
	if err := os.Chmod(b.target, 0o755); err != nil {
		return errors.Wrap(err, "opening the directory of the programs to other users")
	}
	for _, p := range built {
		if err := os.Rename(filepath.Join(staging, p.name), filepath.Join(b.target, p.name)); err != nil {
			return errors.Wrap(err, "moving a program into place")
		}
	}
	return nil
}

func names(programs []program) string {
	all := make([]string, 0, len(programs))
	for _, p := range programs {
		all = append(all, p.name)
	}
	return strings.Join(all, ", ")
}

// compile builds the programs with one go command, which compiles what several of them need once and links side by side.
// Its flags are those of the managers (Makefile), so that they share compiled packages as well.
func (b *build) compile(ctx context.Context, dir string, missing []program, out io.Writer) error {
	// The flags and settings of the Makefile, so that what the managers have in common with this is compiled once.
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", b.ldflags(), "-o", dir + string(filepath.Separator)}
	for _, p := range missing {
		args = append(args, p.pkg)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.source
	cmd.Env = buildEnvironment(os.Environ())
	// The go command removes incomplete files when it is interrupted, and ends its compilers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	progress := newProgress(out, "control plane")
	defer progress.end()
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return errors.Wrapf(err, "building the control plane: %s", progress.rest())
	}
	return nil
}

// ldflags strips the binaries and sets their version, which clients read.
func (b *build) ldflags() string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(b.version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+b.version,
			"-X", pkg+".gitMajor="+major,
			"-X", pkg+".gitMinor="+minor,
			"-X", pkg+".gitTreeState=clean")
	}
	return strings.Join(flags, " ")
}

// buildEnvironment removes what belongs to the caller's own build, such as -race in GOFLAGS: the
// programs would be others, and built again for each caller. GOGC and GOMEMLIMIT of the Makefile are passed on.
func buildEnvironment(env []string) []string {
	dropped := []string{"GOFLAGS=", "CGO_ENABLED=", "GOWORK=", "GOOS=", "GOARCH=", "GODEBUG=", "GOEXPERIMENT="}
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return slices.ContainsFunc(dropped, func(name string) bool { return strings.HasPrefix(entry, name) })
	})
	return append(kept, "CGO_ENABLED=0", "GOWORK=off")
}

// lock takes the file lock and returns what releases it. The lock ends with the process that holds
// it, so an interrupted build does not block others.
func lock(ctx context.Context, path string, out io.Writer) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Wrap(err, "opening the lock of the cache")
	}
	release := func() { _ = file.Close() }
	waiting := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return release, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			release()
			return nil, errors.Wrap(err, "locking the cache")
		}
		if !waiting {
			fmt.Fprintln(out, "Waiting for another build of the control plane.")
			waiting = true
		}
		select {
		case <-ctx.Done():
			release()
			return nil, errors.Wrap(context.Cause(ctx), "waiting for another build")
		case <-time.After(time.Second):
		}
	}
}
