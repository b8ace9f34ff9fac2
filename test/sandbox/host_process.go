package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/childprocess"
)

// hosted is the process of a container.
type hosted struct {
	process       *childprocess.Process
	pod           *podOf
	generation    int64
	image, health string
	ready         bool
}

// start starts the process of a container. A provider that would get an identity from its machine gets that of the sandbox, and the address
// of the simulated cloud; those of AWS are in its Secret.
func (h *Host) start(ctx context.Context, d *appsv1.Deployment, container *corev1.Container) (*hosted, error) {
	name := h.cluster.Name() + "-" + d.Name
	if len(d.Spec.Template.Spec.Containers) > 1 {
		name += "-" + container.Name
	}
	home := filepath.Join(h.dir, d.Namespace, d.Name, container.Name)
	content, err := h.cluster.ServiceAccountKubeconfig(ctx, d.Namespace, d.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	m := &Manager{Name: name}
	if m.kubeconfig, err = writeKubeconfig(home, content); err != nil {
		return nil, err
	}
	for _, address := range []*string{&m.health, &m.metrics} {
		if *address, err = loopbackAddress(); err != nil {
			return nil, err
		}
	}
	environment, err := h.environment(ctx, d, container)
	if err != nil {
		return nil, err
	}
	own, err := h.serve(ctx, d, container)
	if err != nil {
		return nil, err
	}
	for _, cloud := range h.sandbox.Clouds {
		if cloud.Name == programOf(container.Image) && cloud.tokens {
			flags, identity := cloud.provider(h.sandbox, cloud.URL())
			own, environment = append(own, flags...), append(environment, identity...)
		}
	}
	pod := &podOf{h.cluster, d.Namespace, &d.Spec.Template.Spec, container, home, content, append(m.addresses(), own...), environment}
	spec, err := h.sandbox.processOf(ctx, pod, "--kubeconfig="+m.kubeconfig)
	if err != nil {
		return nil, err
	}
	spec.Name, spec.Log = name, filepath.Join(h.logDir, name+".log")
	process, err := childprocess.Start(context.Background(), *spec)
	if err != nil {
		return nil, err
	}
	return &hosted{process: process, pod: pod, generation: d.Generation, image: container.Image, health: m.health}, nil
}

// secretOf reads a Secret for a pod; an optional one that is not there is empty.
func secretOf(ctx context.Context, cluster *Cluster, namespace, name string, optional *bool) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return &corev1.Secret{}, nil
	}
	return secret, errors.Wrapf(err, "reading Secret %s/%s", namespace, name)
}

// environment is what a kubelet would set: fields of the pod, and what Secrets have.
func (h *Host) environment(ctx context.Context, d *appsv1.Deployment, container *corev1.Container) ([]string, error) {
	var all []string
	for _, source := range container.EnvFrom {
		if source.SecretRef == nil {
			return nil, errors.Errorf("Deployment %s has an environment that is from no Secret", d.Name)
		}
		secret, err := secretOf(ctx, h.cluster, d.Namespace, source.SecretRef.Name, source.SecretRef.Optional)
		if err != nil {
			return nil, err
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
	i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return strings.HasPrefix(p.Name, "webhook") })
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
