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

// upstreamModule is the nested module that requires upstream's core, relative to the repository.
const upstreamModule = "test/scale/upstream"

// buildFlags make both binaries alike, and like the ones that are released.
var buildFlags = []string{"-trimpath", "-ldflags", "-s -w"}

// BuildOurs builds the core of this repository into a folder.
func BuildOurs(ctx context.Context, root, dir string, out io.Writer) (Core, error) {
	target := filepath.Join(dir, "core")
	if err := goBuild(ctx, root, target, "./core", out); err != nil {
		return Core{}, err
	}
	return Core{Name: Ours, Version: revision(ctx, root), Path: target}, nil
}

// BuildUpstream builds upstream's core from its Go module into the cache outside of the tree, unless
// the nested module and the Go version are those of an earlier build.
func BuildUpstream(ctx context.Context, root string, out io.Writer) (Core, error) {
	module := filepath.Join(root, upstreamModule)
	version, err := goOutput(ctx, module, "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/cluster-api")
	if err != nil {
		return Core{}, err
	}
	key, err := buildKey(ctx, module)
	if err != nil {
		return Core{}, err
	}
	cache, err := cacheFolder()
	if err != nil {
		return Core{}, err
	}
	core := Core{Name: Upstream, Version: version, ExtraArgs: upstreamArgs}
	core.Path = filepath.Join(cache, "upstream-core", version+"-"+key, "core")
	if _, err := os.Stat(core.Path); err == nil {
		return core, nil
	}
	fmt.Fprintf(out, "building upstream's core %s from its module (minutes, once)\n", version)
	return core, goBuild(ctx, module, core.Path, "sigs.k8s.io/cluster-api/core", out)
}

// goBuild builds beside the target and moves the result into place, so that a program that runs, or a
// build that is interrupted, does no harm.
func goBuild(ctx context.Context, dir, target, pkg string, out io.Writer) error {
	begin := time.Now()
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return errors.Wrap(err, "making a folder to build in")
	}
	staging, err := os.MkdirTemp(filepath.Dir(target), ".building-")
	if err != nil {
		return errors.Wrap(err, "making a folder to build in")
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

// buildKey changes when another binary would come out.
func buildKey(ctx context.Context, module string) (string, error) {
	toolchain, err := goOutput(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, toolchain, buildFlags)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
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

func cacheFolder() (string, error) {
	if dir := os.Getenv(controlplane.CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "millwright"), errors.Wrap(err, "finding the user's cache folder")
}
