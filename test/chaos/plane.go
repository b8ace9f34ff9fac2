package chaos

import (
	"context"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/standin"
	"millwright.dev/test/testenv"
)

// workloads is the namespace of the Pods on the Nodes.
const workloads = "workloads"

// Plane is an API server with the stand-in bootstrap provider and kubelets that end Pods. Runs use it one after the
// other.
type Plane struct {
	server    *controlplane.ControlPlane
	providers *standin.Providers
	scheme    *runtime.Scheme
	// direct reads and writes as an administrator, without faults.
	direct client.WithWatch
}

// StartPlane starts it. Its processes end with the context; Stop removes its directory.
func StartPlane(ctx context.Context, dir string) (*Plane, error) {
	server, err := controlplane.Start(ctx, controlplane.Options{
		Name: "chaos", LogDir: dir, WithoutControllers: true,
		// Faults come from the proxy; a busy machine is none.
		APIServerArgs: []string{"--enable-priority-and-fairness=false"},
	})
	if err != nil {
		return nil, errors.Wrap(err, "starting the API server")
	}
	p := &Plane{server: server}
	if err := p.fill(ctx); err != nil {
		_ = server.Stop()
		return nil, err
	}
	return p, nil
}

// Stop ends the API server.
func (p *Plane) Stop() error { return errors.Wrap(p.server.Stop(), "stopping the API server") }

func (p *Plane) fill(ctx context.Context) error {
	var err error
	if p.scheme, err = standin.Scheme(); err != nil {
		return err
	}
	for name, c := range clouds {
		if err := c.addToScheme(p.scheme); err != nil {
			return errors.Wrapf(err, "adding the kinds of the provider %s to the scheme", name)
		}
	}
	if p.direct, err = client.NewWithWatch(p.server.Config(), client.Options{Scheme: p.scheme}); err != nil {
		return errors.Wrap(err, "creating a client")
	}
	crds, err := readCRDs()
	if err != nil {
		return err
	}
	install := envtest.CRDInstallOptions{CRDs: append(crds, standin.CRDs()...)}
	if _, err := envtest.InstallCRDs(p.server.Config(), install); err != nil {
		return errors.Wrap(err, "installing CRDs")
	}
	if p.providers, err = standin.New(p.server.Config(), logr.Discard()); err != nil {
		return err
	}
	for _, object := range []client.Object{&corev1.Node{}, &corev1.Pod{}} {
		if _, err := p.providers.Cache().GetInformer(ctx, object); err != nil {
			return errors.Wrap(err, "watching Nodes and Pods")
		}
	}
	go func() { _ = p.providers.Start(ctx) }()
	if !p.providers.Cache().WaitForCacheSync(ctx) {
		return errors.Wrap(context.Cause(ctx), "filling the cache of the stand-ins")
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workloads}},
		// Created by the controller manager where there is one; Pods are refused without it.
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: workloads, Name: "default"}},
	} {
		if err := p.direct.Create(ctx, object); err != nil {
			return errors.Wrapf(err, "creating %s", object.GetName())
		}
	}
	return nil
}

// readCRDs reads the generated CRDs. Version v1beta1 is not served, since nothing converts to it here.
func readCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	read := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	for _, directory := range []testenv.CRDs{testenv.CoreCRDs, testenv.AWSCRDs, testenv.AzureCRDs, testenv.GCPCRDs} {
		path := filepath.Join(testenv.Root(), string(directory))
		if files, _ := filepath.Glob(filepath.Join(path, "*.yaml")); len(files) == 0 {
			return nil, errors.Errorf("%s has no CRDs: run `make generate`", path)
		}
		read.Paths = append(read.Paths, path)
	}
	if err := envtest.ReadCRDFiles(&read); err != nil {
		return nil, errors.Wrap(err, "reading the CRDs")
	}
	for _, crd := range read.CRDs {
		crd.Spec.Conversion = nil
		for i := range crd.Spec.Versions {
			if v := &crd.Spec.Versions[i]; v.Name == "v1beta1" && !v.Storage {
				v.Served = false
			}
		}
	}
	return read.CRDs, nil
}
