package clusterctl

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/testinputs"
)

const (
	// otherProvider is another project's, in the directory of the release before ours is.
	otherProvider = "infrastructure-other/v0.1.0/infrastructure-components.yaml"
	// earlierRun is what a release of the same version had that ours has not.
	earlierRun = "cluster-api/v0.1.0/stale.yaml"
)

// shared is the release v0.1.0 of this run, which tests only read.
var shared struct {
	once      sync.Once
	directory string
	err       error
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(shared.directory)
	os.Exit(code)
}

// imagesOfOne is the make of a release: it builds the images of one manager, for all platforms. To link, to compress and to hash those of
// all five takes 23 s of processor time; TestImagesOfAllManagers has the others.
const imagesOfOne = "#!/bin/sh\nexec make \"$@\" ONLY=cloudconfig\n"

// release puts the release v0.1.0 into a directory. It is built once for all tests.
func release(t *testing.T, directory string) {
	t.Helper()
	shared.once.Do(func() { shared.directory, shared.err = makeShared(t) })
	NewWithT(t).Expect(shared.err).NotTo(HaveOccurred(), "the release that all tests have in common")
	NewWithT(t).Expect(os.CopyFS(directory, os.DirFS(shared.directory))).To(Succeed())
}

// makeShared builds it as a maintainer would, with images for all platforms and for their own registry, in a directory of releases that
// has another provider and what an earlier run has left.
func makeShared(t *testing.T) (directory string, err error) {
	root, err := controlplane.Root()
	if err != nil {
		return "", err
	}
	directory, err = os.MkdirTemp("", "release")
	if err != nil {
		return "", errors.Wrap(err, "creating a directory for the release")
	}
	// This file identifies a directory of releases.
	marker, err := os.ReadFile(filepath.Join(root, "config", "release", "clusterctl.yaml"))
	if err != nil {
		return directory, errors.Wrap(err, "reading clusterctl's configuration")
	}
	for file, content := range map[string]string{
		"clusterctl.yaml": string(marker), otherProvider: "another project's", earlierRun: "of an earlier run",
	} {
		path := filepath.Join(directory, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return directory, errors.Wrap(err, "creating what is there before the release")
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return directory, errors.Wrap(err, "writing what is there before the release")
		}
	}
	maker := filepath.Join(t.TempDir(), "images-of-one")
	if err := os.WriteFile(maker, []byte(imagesOfOne), 0o700); err != nil {
		return directory, errors.Wrap(err, "writing the make of the images")
	}
	return directory, makeRelease(t, "v0.1.0", directory, "REGISTRY=registry.example.com/team", "MAKE="+maker)
}

// releaseManifests builds a release for the default registry, by make, whose images come from a stub: for tests that only read manifests.
func (p *person) releaseManifests(version, directory string) error {
	maker := p.write("makes-images", makesImages)
	p.run("chmod +x makes-images")
	return makeRelease(p.t, version, directory, "MAKE="+maker)
}

// makeRelease builds a release by make.
func makeRelease(t *testing.T, version, directory string, settings ...string) error {
	t.Helper()
	output, err := atRoot(t, nil, "make", append([]string{"release", "VERSION=" + version, "RELEASES=" + directory}, settings...)...)
	return errors.Wrapf(err, "make release: %s", output)
}

// atRoot runs a program in the module's directory, without the environment of make.
func atRoot(t *testing.T, environment []string, program string, arguments ...string) (output []byte, err error) {
	t.Helper()
	testinputs.Repository(t)
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), program, arguments...)
	cmd.Dir = root
	cmd.Env = append(append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0"), environment...)
	return cmd.CombinedOutput()
}
