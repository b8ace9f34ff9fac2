// Package container runs programs from container images as a kubelet would have them run, without a container runtime: it unpacks
// an OCI image layout, and returns how to start a container of it by bin/container.
package container

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"

	"millwright.dev/test/childprocess"
)

// Image is one that was unpacked.
type Image struct {
	// Root is its root file system.
	Root string
	// Config is how its author says to run it.
	Config v1.Config
}

// Unpack unpacks the image for this computer's processor from an image layout into a directory.
func Unpack(path, into string) (*Image, error) {
	img, err := read(path)
	if err != nil {
		return nil, errors.Wrapf(err, "reading the image in %s", path)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, errors.Wrap(err, "reading the config of an image")
	}
	content := mutate.Extract(img)
	defer content.Close()
	return &Image{Root: into, Config: config.Config}, errors.Wrapf(extract(content, into), "unpacking %s", path)
}

// read is the image of this computer's platform, of the only index in a layout.
func read(path string) (v1.Image, error) {
	outer, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, err
	}
	manifest, err := outer.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("it has %d manifests instead of one index", len(manifest.Manifests))
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	if manifest, err = index.IndexManifest(); err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform != nil && m.Platform.OS == "linux" && m.Platform.Architecture == runtime.GOARCH {
			return index.Image(m.Digest)
		}
	}
	return nil, fmt.Errorf("it has no image for linux/%s", runtime.GOARCH)
}

func extract(content io.Reader, into string) error {
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(strings.Trim(header.Name, "/"))
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, os.FileMode(header.Mode))
		case tar.TypeReg:
			err = write(root, name, os.FileMode(header.Mode), archive)
		default:
			err = fmt.Errorf("%s has type %q, which the images of this project have no use for", header.Name, header.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, name string, mode os.FileMode, content io.Reader) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// Check returns why containers cannot be created here, such as in a sandbox that forbids user namespaces.
func Check(program string) error {
	dir, err := os.MkdirTemp("", "container-")
	if err != nil {
		return errors.Wrap(err, "creating a directory")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	output, err := exec.Command(program, "-root="+dir, "-check").CombinedOutput()
	return errors.Wrapf(err, "%s", strings.TrimSpace(string(output)))
}

// Mount is a directory of the computer in a container. It is read-only, unless it is Writable as an emptyDir is.
type Mount struct {
	From, To string
	Writable bool
}

// Command is how to start the container of a pod: its image's program with the Deployment's arguments, as the Deployment's user.
// What a Deployment demands and bin/container does not do is an error. The environment of the Spec is left to the caller.
func (i *Image) Command(program string, c *corev1.Container, mounts ...Mount) (*childprocess.Spec, error) {
	user, err := i.user(c.SecurityContext)
	if err != nil {
		return nil, err
	}
	args := []string{"-root=" + i.Root, fmt.Sprintf("-user=%d", user)}
	for _, m := range mounts {
		kind := "-mount="
		if m.Writable {
			kind = "-volume="
		}
		args = append(args, kind+m.From+":"+m.To)
	}
	command := c.Command
	if len(command) == 0 {
		command = i.Config.Entrypoint
	}
	args = append(append(args, "--"), command...)
	return &childprocess.Spec{Path: program, Args: append(args, c.Args...), CleanEnv: true}, nil
}

// user is that of the Deployment and of the image, which have to be the same one, and no more than bin/container gives.
func (i *Image) user(s *corev1.SecurityContext) (int64, error) {
	switch {
	case s == nil || s.RunAsUser == nil || s.RunAsGroup == nil || *s.RunAsUser == 0 || *s.RunAsUser != *s.RunAsGroup:
		return 0, errors.New("securityContext has no runAsUser with a group of the same number, other than 0")
	case i.Config.User != fmt.Sprintf("%d:%d", *s.RunAsUser, *s.RunAsGroup):
		return 0, fmt.Errorf("the image is to run as %q, its Deployment as %d:%d", i.Config.User, *s.RunAsUser, *s.RunAsGroup)
	case s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
		return 0, errors.New("securityContext.readOnlyRootFilesystem is not true")
	case s.Capabilities == nil || len(s.Capabilities.Add) > 0 || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL":
		return 0, errors.New("securityContext.capabilities does not drop all")
	case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
		return 0, errors.New("securityContext.allowPrivilegeEscalation is not false")
	}
	return *s.RunAsUser, nil
}
