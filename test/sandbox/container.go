package sandbox

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/container"
)

// serviceAccountDir is where a kubelet puts the token of a pod's ServiceAccount.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// programOf is the last part of an image's name without millwright-, and the file in bin/: millwright-aws is aws.
func programOf(image string) string { return strings.TrimPrefix(imageName(image), "millwright-") }

// imageName is the last part of an image's reference, without registry and tag.
func imageName(image string) string {
	name, _, _ := strings.Cut(path.Base(image), ":")
	return name
}

// podOf is what a container is created from.
type podOf struct {
	cluster   *Cluster
	namespace string
	spec      *corev1.PodSpec
	container *corev1.Container
	// home is the directory for volumes.
	home       string
	kubeconfig []byte
	// args and environment are added to those of the Deployment.
	args, environment []string
}

// processOf is how to start a container of a pod: from its image with Options.Images, else as a program of bin/ with more flags,
// for what a process outside of a container cannot find.
func (s *Sandbox) processOf(ctx context.Context, p *podOf, more ...string) (*childprocess.Spec, error) {
	if s.options.Images && s.options.Programs[imageName(p.container.Image)] == "" {
		return s.contained(ctx, p)
	}
	return s.uncontained(ctx, p, more)
}

// uncontained is a process of bin/ in place of a container: arguments that name a file of a volume get its real path.
func (s *Sandbox) uncontained(ctx context.Context, p *podOf, more []string) (*childprocess.Spec, error) {
	args := slices.Clone(p.container.Args)
	for _, m := range p.container.VolumeMounts {
		from, err := p.volume(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		for i := range args {
			if flag, file, ok := strings.Cut(args[i], "="); ok && (file == m.MountPath || strings.HasPrefix(file, m.MountPath+"/")) {
				args[i] = flag + "=" + from + strings.TrimPrefix(file, m.MountPath)
			}
		}
	}
	program := s.options.Programs[imageName(p.container.Image)]
	if program == "" {
		program = s.paths.file("bin/" + programOf(p.container.Image))
	}
	return &childprocess.Spec{
		// Those of the test come last, and win.
		Path: program, Args: slices.Concat(args, more, p.args), CleanEnv: true,
		Env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TMPDIR=" + p.home}, p.environment...), Dir: p.home,
	}, nil
}

// contained is how a kubelet would start a container of a pod, from its image in out/test-images: it finds the API server and its
// ServiceAccount as every pod does, and its Secrets as files.
func (s *Sandbox) contained(ctx context.Context, p *podOf) (*childprocess.Spec, error) {
	c := p.container.DeepCopy()
	c.Args = append(c.Args, p.args...)
	image, err := s.unpacked(c.Image)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(p.kubeconfig)
	if err != nil {
		return nil, errors.Wrap(err, "reading a kubeconfig")
	}
	account, err := p.directory("serviceaccount", map[string][]byte{
		"token": []byte(config.BearerToken), "ca.crt": config.CAData, "namespace": []byte(p.namespace),
	})
	if err != nil {
		return nil, err
	}
	mounts := []container.Mount{{From: account, To: serviceAccountDir}}
	for _, m := range c.VolumeMounts {
		from, err := p.volume(ctx, m.Name)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, container.Mount{From: from, To: m.MountPath})
	}
	spec, err := image.Command(s.paths.file("bin/container"), c, mounts...)
	if err != nil {
		return nil, errors.Wrapf(err, "container of %s", c.Image)
	}
	host, port, _ := strings.Cut(strings.TrimPrefix(config.Host, "https://"), ":")
	spec.Env = append(p.environment, "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	spec.Dir = p.home
	return spec, nil
}

// volume is a directory with the content of a volume of the pod, which has to be a Secret.
func (p *podOf) volume(ctx context.Context, name string) (string, error) {
	i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 || p.spec.Volumes[i].Secret == nil {
		return "", errors.Errorf("volume %s is no Secret", name)
	}
	source := p.spec.Volumes[i].Secret
	secret, err := secretOf(ctx, p.cluster, p.namespace, source.SecretName, source.Optional)
	if err != nil {
		return "", err
	}
	files := secret.Data
	if len(source.Items) > 0 {
		files = map[string][]byte{}
		for _, item := range source.Items {
			if content, ok := secret.Data[item.Key]; ok {
				files[item.Path] = content
			}
		}
	}
	return p.directory("volume-"+name, files)
}

// refresh writes the current content of the pod's Secrets.
func (p *podOf) refresh(ctx context.Context) error {
	for _, m := range p.container.VolumeMounts {
		if _, err := p.volume(ctx, m.Name); err != nil {
			return err
		}
	}
	return nil
}

func (p *podOf) directory(name string, files map[string][]byte) (string, error) {
	dir := filepath.Join(p.home, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", errors.Wrap(err, "creating the directory of a volume")
	}
	for file, content := range files {
		path := filepath.Join(dir, file)
		if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
			continue
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return "", errors.Wrap(err, "writing a volume")
		}
	}
	return dir, nil
}

// unpacked is the image in out/test-images, unpacked once.
func (s *Sandbox) unpacked(reference string) (*container.Image, error) {
	s.imagesMu.Lock()
	defer s.imagesMu.Unlock()
	name := imageName(reference)
	if image := s.images[name]; image != nil {
		return image, nil
	}
	into := filepath.Join(s.dir, "images", name)
	if err := os.MkdirAll(into, 0o755); err != nil {
		return nil, errors.Wrap(err, "creating the directory of an image")
	}
	image, err := container.Unpack(s.paths.file("out/test-images/"+name), into)
	if err != nil {
		return nil, errors.Wrap(err, "run `make test-images`")
	}
	if s.images == nil {
		s.images = map[string]*container.Image{}
	}
	s.images[name] = image
	return image, nil
}
