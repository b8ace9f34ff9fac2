package cores

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/controlplane"
)

// upstreamModule is the nested module that requires upstream's core.
const upstreamModule = "test/scale/upstream"

// buildFlags make both binaries alike, and like the ones that are released. They are those of the Makefile, so that what
// `make build` has compiled is not compiled again.
var buildFlags = []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w"}

// BuildOurs builds the core of this repository into a directory.
func BuildOurs(ctx context.Context, root, dir string, out io.Writer) (Core, error) {
	path, version, err := BuildProgram(ctx, root, filepath.Join(dir, "core"), "./core", out)
	return Core{Name: Ours, Version: version, Path: path}, err
}

// BuildProgram builds a package of this repository, and returns where the program is and the commit that it was built from.
func BuildProgram(ctx context.Context, root, target, pkg string, out io.Writer) (path, version string, err error) {
	if err := goBuild(ctx, root, target, pkg, out); err != nil {
		return "", "", err
	}
	return target, revision(ctx, root), nil
}

// Tool is a program of another project, which a nested module of this repository pins.
type Tool struct {
	// Directory of the nested module, relative to the repository.
	Directory string
	// Module that the program is part of, and its Package.
	Module, Package string
	// Name of the binary, and of its directory in the cache.
	Name string
}

// BuildUpstream builds upstream's core from its Go module.
func BuildUpstream(ctx context.Context, root string, out io.Writer) (Core, error) {
	path, version, err := BuildTool(ctx, root, Tool{
		Directory: upstreamModule, Module: "sigs.k8s.io/cluster-api", Package: "sigs.k8s.io/cluster-api/core", Name: "upstream-core",
	}, out)
	return Core{Name: Upstream, Version: version, Path: path, ExtraArgs: upstreamArgs}, err
}

// BuildTool builds a program into the cache outside of the tree, unless the nested module and the Go version are those of
// an earlier build, and returns where it is and which version of its module it is.
func BuildTool(ctx context.Context, root string, tool Tool, out io.Writer) (path, version string, err error) {
	module := filepath.Join(root, tool.Directory)
	if version, err = goOutput(ctx, module, "list", "-m", "-f", "{{.Version}}", tool.Module); err != nil {
		return "", "", err
	}
	key, err := buildKey(ctx, module)
	if err != nil {
		return "", "", err
	}
	cache, err := cacheDirectory()
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(cache, tool.Name, version+"-"+key, tool.Name)
	if _, err := os.Stat(path); err == nil {
		return path, version, nil
	}
	fmt.Fprintf(out, "building %s %s from its module (minutes, once)\n", tool.Name, version)
	return path, version, goBuild(ctx, module, path, tool.Package, out)
}

// ModuleDirectory is where the sources of a tool's module are.
func ModuleDirectory(ctx context.Context, root string, tool Tool) (string, error) {
	return goOutput(ctx, filepath.Join(root, tool.Directory), "list", "-m", "-f", "{{.Dir}}", tool.Module)
}

// goBuild builds beside the target and moves the result into place, so that a program that runs, or a
// build that is interrupted, does no harm.
func goBuild(ctx context.Context, dir, target, pkg string, out io.Writer) error {
	begin := time.Now()
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return errors.Wrap(err, "creating a directory to build in")
	}
	staging, err := os.MkdirTemp(filepath.Dir(target), ".building-")
	if err != nil {
		return errors.Wrap(err, "creating a directory to build in")
	}
	defer func() { _ = os.RemoveAll(staging) }()
	built := filepath.Join(staging, filepath.Base(target))
	args := append([]string{"build"}, buildFlags...)
	if _, err := goOutput(ctx, dir, append(args, "-o", built, pkg)...); err != nil {
		return err
	}
	fmt.Fprintf(out, "built %s in %s\n", pkg, time.Since(begin).Round(time.Second))
	return errors.Wrap(os.Rename(built, target), "moving a build into place")
}

func goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// The caller's flags, such as -race, would make other binaries.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return "", errors.Wrapf(err, "go %s: %s", args[0], strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(output)), nil
}

// buildKey changes when the binary would differ.
func buildKey(ctx context.Context, module string) (string, error) {
	toolchain, err := goOutput(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, toolchain, buildFlags)
	files, err := filepath.Glob(filepath.Join(module, "*.go"))
	if err != nil {
		return "", errors.Wrap(err, "listing the module's own files")
	}
	for _, file := range append(files, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")) {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", errors.Wrap(err, "reading the module of upstream's core")
		}
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// revision names the commit that the core was built from, with a mark when files differ from it.
func revision(ctx context.Context, root string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12")
	cmd.Dir = root
	output, err := cmd.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(output))
}

func cacheDirectory() (string, error) {
	if dir := os.Getenv(controlplane.CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "millwright"), errors.Wrap(err, "finding the user's cache directory")
}
