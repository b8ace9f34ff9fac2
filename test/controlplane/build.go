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

var programs = []program{
	{"etcd", "./etcd"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"hollow-kubelet", "./hollow-kubelet"},
}

// Build builds the control plane's programs into the cache directory unless they are there, and returns
// the directory. Builds at the same time wait for each other; the directory appears when it is complete.
// The first build takes minutes: out says meanwhile how far it is.
func Build(ctx context.Context, out io.Writer) (string, error) {
	b, err := newBuild()
	if err != nil {
		return "", err
	}
	if b.complete() {
		return b.target, nil
	}
	parent := filepath.Dir(b.target)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		return "", errors.Wrap(err, "making the cache directory")
	}
	unlock, err := lock(ctx, filepath.Join(parent, ".lock"), out)
	if err != nil {
		return "", err
	}
	defer unlock()
	if b.complete() {
		return b.target, nil
	}
	return b.target, b.run(ctx, parent, out)
}

func (b *build) run(ctx context.Context, parent string, out io.Writer) error {
	staging, err := os.MkdirTemp(parent, ".building-")
	if err != nil {
		return errors.Wrap(err, "making a directory to build in")
	}
	defer func() { _ = os.RemoveAll(staging) }()
	begin := time.Now()
	fmt.Fprintf(out, "Building Kubernetes %s and etcd from their Go modules, once; this takes some minutes.\n", b.version)
	if err := b.compile(ctx, staging, out); err != nil {
		return err
	}
	// Leftovers of a directory that was incomplete give way.
	if err := os.RemoveAll(b.target); err != nil {
		return errors.Wrap(err, "removing an incomplete build")
	}
	if err := os.Chmod(staging, 0o755); err != nil {
		return errors.Wrap(err, "opening the build directory to other users")
	}
	if err := os.Rename(staging, b.target); err != nil {
		return errors.Wrap(err, "moving the build into place")
	}
	fmt.Fprintf(out, "Built the control plane in %s: %s\n", time.Since(begin).Round(time.Second), b.target)
	return nil
}

// compile builds all programs with one go command, which compiles what several of them need once and links side by side.
// Its flags are those of the managers (Makefile), so that they share compiled packages as well.
func (b *build) compile(ctx context.Context, dir string, out io.Writer) error {
	// The flags and settings of the Makefile, so that what the managers have in common with this is compiled once.
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", b.ldflags(), "-o", dir + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, p.pkg)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.source
	cmd.Env = buildEnvironment(os.Environ())
	// The go command removes what it has made half when it is interrupted, and ends its compilers.
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

// ldflags strips the binaries and tells them their version, which clients ask for.
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

// buildEnvironment keeps out what belongs to the caller's own build, such as -race in GOFLAGS: the
// programs would be others, and built again for each caller.
func buildEnvironment(env []string) []string {
	dropped := []string{"GOFLAGS=", "CGO_ENABLED=", "GOWORK=", "GOOS=", "GOARCH=", "GODEBUG=", "GOEXPERIMENT=", "GOGC=", "GOMEMLIMIT="}
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return slices.ContainsFunc(dropped, func(name string) bool { return strings.HasPrefix(entry, name) })
	})
	return append(kept, "CGO_ENABLED=0", "GOWORK=off", "GOGC=400", "GOMEMLIMIT=3GiB")
}

// lock takes the file lock and returns what releases it. The lock goes with the process that holds
// it, so an interrupted build locks nobody out.
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
