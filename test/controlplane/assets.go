// Package controlplane runs a real Kubernetes control plane on loopback: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, built from their Go modules by the nested Go module in
// the directory binaries and cached outside the tree. Tests, the sandbox and the demo start it by Start;
// controller-runtime's envtest uses the directory that Assets returns.
package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

const (
	// AssetsEnv names the directory with the programs, and wins over the cache; envtest reads it too.
	AssetsEnv = "KUBEBUILDER_ASSETS"
	// CacheEnv names the directory for what Millwright builds once and keeps outside the tree. Without
	// it that is the directory millwright in the user's cache directory.
	CacheEnv = "MILLWRIGHT_CACHE"

	modulePath = "test/controlplane/binaries"
	mainModule = "module millwright.dev"
)

// kubernetesVersion is found in the nested module's go.mod.
var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)

// Assets returns the directory that holds etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// hollow-kubelet and, after `make controlplane`, kubectl: that of $KUBEBUILDER_ASSETS when it is set, else
// the one in the cache. It never builds; the error says what to do.
func Assets() (string, error) {
	if dir := os.Getenv(AssetsEnv); dir != "" {
		return dir, nil
	}
	b, err := newBuild()
	if err != nil {
		return "", err
	}
	if len(b.missing(programs)) > 0 {
		return "", fmt.Errorf("the control plane's programs are not in %s: run `make controlplane`", b.target)
	}
	return b.target, nil
}

// build is what is known about a build before it runs.
type build struct {
	// source is the directory of the nested module, target the directory that the programs end up in.
	source, target string
	// version is the Kubernetes version that go.mod requires, such as v1.36.3.
	version string
}

func newBuild() (*build, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	source := filepath.Join(root, modulePath)
	version, err := requiredVersion(filepath.Join(source, "go.mod"))
	if err != nil {
		return nil, err
	}
	hash, err := hashDirectory(source)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDirectory()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(cache, "controlplane", version+"-"+hash)
	return &build{source: source, target: target, version: version}, nil
}

// missing returns those of the wanted programs that are not there: not built yet, or removed by a user.
func (b *build) missing(wanted []program) []program {
	return slices.DeleteFunc(slices.Clone(wanted), func(p program) bool {
		info, err := os.Stat(filepath.Join(b.target, p.name))
		return err == nil && info.Mode().IsRegular()
	})
}

// Root finds the directory of the module millwright.dev: above the working directory, which is the package's
// directory in a test, or where this file was compiled from. Binaries built with -trimpath do not know
// their sources, so that is only the second way.
func Root() (string, error) {
	if dir, err := os.Getwd(); err == nil {
		if root, ok := rootAbove(dir); ok {
			return root, nil
		}
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if root, ok := rootAbove(filepath.Dir(file)); ok {
			return root, nil
		}
	}
	return "", fmt.Errorf("no directory of the module millwright.dev above the working directory: run in the repository, or set %s", AssetsEnv)
}

func rootAbove(dir string) (string, bool) {
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(content), "\n"), mainModule) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func requiredVersion(goMod string) (string, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return "", errors.Wrap(err, "reading the control plane's module")
	}
	match := kubernetesVersion.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("%s does not require k8s.io/kubernetes", goMod)
	}
	return string(match[1]), nil
}

func cacheDirectory() (string, error) {
	if dir := os.Getenv(CacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Wrapf(err, "finding the user's cache directory; %s may name another one", CacheEnv)
	}
	return filepath.Join(dir, "millwright"), nil
}

// hashDirectory hashes names and contents of all files, and the platform that is built for.
func hashDirectory(dir string) (string, error) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s/%s\n", runtime.GOOS, runtime.GOARCH)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %x\n", filepath.ToSlash(name), sha256.Sum256(content))
		return nil
	})
	if err != nil {
		return "", errors.Wrap(err, "hashing the control plane's module")
	}
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}
