// Package interop runs Millwright's core with providers that it shares no code with: Cluster API's own kubeadm bootstrap
// and control plane providers and its in-memory infrastructure provider, as released. See README.md.
package interop

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
	"millwright.dev/test/scale/cores"
)

// provider is a program of upstream's and the directory of its CRDs in its module.
type provider struct {
	cores.Tool
	crds string
}

const (
	nestedModule = "test/interop/upstream"
	mainModule   = "sigs.k8s.io/cluster-api"
	testModule   = "sigs.k8s.io/cluster-api/test"
)

var providers = []provider{
	{
		cores.Tool{Directory: nestedModule, Module: mainModule, Package: mainModule + "/bootstrap/kubeadm", Name: "upstream-bootstrap-kubeadm"},
		"bootstrap/kubeadm/config/crd/bases",
	},
	{
		cores.Tool{
			Directory: nestedModule,
			Module:    mainModule,
			Package:   mainModule + "/controlplane/kubeadm",
			Name:      "upstream-control-plane-kubeadm",
		},
		"controlplane/kubeadm/config/crd/bases",
	},
	{
		cores.Tool{
			Directory: nestedModule,
			Module:    testModule,
			Package:   testModule + "/infrastructure/docker",
			Name:      "upstream-infrastructure-dev",
		},
		"infrastructure/docker/config/crd/bases",
	},
}

// launcher builds, installs and starts upstream's providers.
type launcher struct {
	root, dir string
	out       io.Writer
	// only are the providers of this launcher.
	only []provider
}

// build builds the providers and returns the path of each.
func (l *launcher) build(ctx context.Context) (map[string]string, error) {
	paths := map[string]string{}
	for _, p := range l.only {
		path, version, err := cores.BuildTool(ctx, l.root, p.Tool, l.out)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(l.out, "%s %s\n", p.Name, version)
		paths[p.Name] = path
	}
	return paths, nil
}

// install creates the CRDs of the providers with the labels that the contract requires, which upstream's manifests add.
// Neither webhooks nor conversion is installed: every object is created in the newest version, with its defaults written out.
func (l *launcher) install(ctx context.Context, client sandbox.Client) error {
	for _, p := range l.only {
		module, err := cores.ModuleDirectory(ctx, l.root, p.Tool)
		if err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(module, p.crds, "*.yaml"))
		if err != nil || len(files) == 0 {
			return errors.Errorf("%s has no CRDs in %s: %v", p.Module, p.crds, err)
		}
		for _, file := range files {
			if err := sandbox.CreateFrom(ctx, client, file, inContract); err != nil {
				return err
			}
		}
	}
	return nil
}

func inContract(crd *unstructured.Unstructured) {
	crd.SetLabels(map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"})
}

// established reports whether the API server serves all CRDs.
func established(ctx context.Context, client sandbox.Client) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := client.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		served := false
		for _, c := range list.Items[i].Status.Conditions {
			served = served || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}
		if !served {
			return errors.Errorf("CRD %s is not established", list.Items[i].Name)
		}
	}
	return nil
}

// start starts a provider as an administrator; what upstream's providers may do is not what is tested.
func (l *launcher) start(ctx context.Context, name, path, kubeconfig string) (*childprocess.Process, error) {
	home := filepath.Join(l.dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, errors.Wrap(err, "creating a provider's directory")
	}
	if err := cores.EnsureCertificate(home); err != nil {
		return nil, err
	}
	var ports [3]int
	for i := range ports {
		var err error
		if ports[i], err = controlplane.FreePort(); err != nil {
			return nil, err
		}
	}
	return childprocess.Start(ctx, childprocess.Spec{
		Name: name, Path: path, Dir: home, Log: filepath.Join(l.dir, name+".log"), CleanEnv: true,
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home,
			"POD_NAMESPACE=default", "POD_NAME=" + name, "POD_UID=" + name, "POD_IP=127.0.0.1",
		},
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--insecure-diagnostics", "--v=2",
			fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[1]),
			fmt.Sprintf("--webhook-port=%d", ports[2]), "--webhook-cert-dir=" + home,
		},
	})
}
