package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/childprocess"
)

// hosted is the process of a Deployment.
type hosted struct {
	process       *childprocess.Process
	generation    int64
	image, health string
	ready         bool
}

// start starts the process of a Deployment.
func (h *Host) start(ctx context.Context, d *appsv1.Deployment) (*hosted, error) {
	pod := d.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		return nil, errors.Errorf("Deployment %s has %d containers, not one", d.Name, len(pod.Containers))
	}
	container := pod.Containers[0]
	name := h.cluster.Name() + "-" + d.Name
	home := filepath.Join(h.dir, d.Namespace, d.Name)
	content, err := h.cluster.ServiceAccountKubeconfig(ctx, d.Namespace, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := writeKubeconfig(home, content)
	if err != nil {
		return nil, err
	}
	environment, err := h.environment(ctx, d, &container)
	if err != nil {
		return nil, err
	}
	m := &Manager{Name: name, kubeconfig: kubeconfig}
	if m.health, err = loopbackAddress(); err != nil {
		return nil, err
	}
	if m.metrics, err = loopbackAddress(); err != nil {
		return nil, err
	}
	own, err := h.serve(ctx, d, &container)
	if err != nil {
		return nil, err
	}
	flags := slices.DeleteFunc(m.flags(), func(flag string) bool { return strings.HasPrefix(flag, "--leader-elect") })
	process, err := childprocess.Start(context.Background(), childprocess.Spec{
		Name: name, Path: h.program(container.Image), Args: slices.Concat(container.Args, flags, own), CleanEnv: true,
		Env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}, environment...),
		Dir: home, Log: filepath.Join(h.logDir, name+".log"),
	})
	if err != nil {
		return nil, err
	}
	return &hosted{process: process, generation: d.Generation, image: container.Image, health: m.health}, nil
}

// environment is what a kubelet would set: fields of the pod, and what Secrets have.
func (h *Host) environment(ctx context.Context, d *appsv1.Deployment, container *corev1.Container) ([]string, error) {
	var all []string
	for _, source := range container.EnvFrom {
		if source.SecretRef == nil {
			return nil, errors.Errorf("Deployment %s has an environment that is from no Secret", d.Name)
		}
		secret := &corev1.Secret{}
		err := h.cluster.Client.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: source.SecretRef.Name}, secret)
		if client.IgnoreNotFound(err) != nil || err != nil && (source.SecretRef.Optional == nil || !*source.SecretRef.Optional) {
			return nil, errors.Wrapf(err, "reading the environment of Deployment %s", d.Name)
		}
		for key, value := range secret.Data {
			all = append(all, key+"="+string(value))
		}
	}
	fields := map[string]string{"metadata.namespace": d.Namespace, "metadata.name": d.Name + "-0", "metadata.uid": string(d.UID)}
	for _, v := range container.Env {
		value := v.Value
		if v.ValueFrom != nil {
			if v.ValueFrom.FieldRef == nil {
				return nil, errors.Errorf("Deployment %s has a variable %s that is from no field", d.Name, v.Name)
			}
			value = fields[v.ValueFrom.FieldRef.FieldPath]
		}
		all = append(all, v.Name+"="+value)
	}
	return all, nil
}

// serve leads the Services of the Deployment to a port of this machine, and returns the flags by which the process takes
// it. Webhooks are all that a manager serves to API servers.
func (h *Host) serve(ctx context.Context, d *appsv1.Deployment, container *corev1.Container) (flags []string, err error) {
	i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "webhook" })
	if i < 0 {
		return nil, nil
	}
	address, err := loopbackAddress()
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(address, ":")
	var port int32
	if _, err := fmt.Sscan(text, &port); err != nil {
		return nil, errors.Wrap(err, "reading a port")
	}
	return []string{fmt.Sprintf("--webhook-port=%d", port)}, h.lead(ctx, d, port)
}
