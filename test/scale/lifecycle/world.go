package lifecycle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/measure"
	"millwright.dev/test/scale/standin"
)

// generatedCRDs are those of the core kinds, relative to the repository.
const generatedCRDs = "config/core/crd/generated"

// auditPolicy records the requests of the cores alone, by what they were for.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: %s
  users: [%q, %q]
- level: None
`

// world is a control plane with everything that a core finds there.
type world struct {
	setting   Setting
	plane     *controlplane.ControlPlane
	providers *standin.Providers
	view      *view
	audit     *measure.AuditLog
	// kubeconfig is the path of the core's.
	kubeconfig string
	stopped    chan error
}

// newWorld starts a control plane and the stand-ins. Both end with the context; close must be
// called as well.
func newWorld(ctx context.Context, o Options) (*world, error) {
	core, target := accountUser(coreAccount), accountUser(targetAccount)
	policy := filepath.Join(o.Dir, "audit-policy.yaml")
	level := "Metadata"
	if o.RequestBodies {
		level = "Request"
	}
	content := fmt.Sprintf(auditPolicy, level, core, target)
	if err := os.WriteFile(policy, []byte(content), 0o600); err != nil {
		return nil, errors.Wrap(err, "writing the audit policy")
	}
	w := &world{setting: o.Setting, audit: &measure.AuditLog{Path: filepath.Join(o.Dir, "audit.log"), Core: core, Target: target}}
	// Runs in the same directory begin a log of their own.
	if err := os.RemoveAll(w.audit.Path); err != nil {
		return nil, errors.Wrap(err, "removing the audit log of an earlier run")
	}
	var err error
	w.plane, err = controlplane.Start(ctx, controlplane.Options{
		Name:               "scale",
		LogDir:             o.Dir,
		WithoutControllers: true,
		APIServerArgs: []string{
			"--audit-policy-file=" + policy,
			"--audit-log-path=" + w.audit.Path,
			// What is measured is the core, not how the API server distributes its workers.
			"--enable-priority-and-fairness=false",
		},
	})
	if err != nil {
		return nil, errors.Wrap(err, "starting the control plane")
	}
	if err := w.fill(ctx, o); err != nil {
		return nil, kerrors.NewAggregate([]error{err, w.close()})
	}
	return w, nil
}

func (w *world) close() error { return errors.Wrap(w.plane.Stop(), "stopping the control plane") }

func (w *world) fill(ctx context.Context, o Options) error {
	crds, err := coreCRDs(o.Root, o.FurtherCRDs)
	if err != nil {
		return err
	}
	install := envtest.CRDInstallOptions{CRDs: append(crds, standin.CRDs()...)}
	if _, err := envtest.InstallCRDs(w.plane.Config(), install); err != nil {
		return errors.Wrap(err, "installing CRDs")
	}
	if w.providers, err = standin.New(w.plane.Config(), o.Log); err != nil {
		return err
	}
	w.view = newView()
	if err := w.view.observe(ctx, w.providers.Cache()); err != nil {
		return err
	}
	w.stopped = make(chan error, 1)
	go func() { w.stopped <- w.providers.Start(ctx) }()
	if !w.providers.Cache().WaitForCacheSync(ctx) {
		return errors.Wrap(context.Cause(ctx), "filling the cache of the stand-in providers")
	}
	if err := createAll(ctx, w.providers.Client(), append(foundations(), templates()...)); err != nil {
		return err
	}
	if err := w.issueKubeconfig(ctx, filepath.Join(o.Dir, "core.kubeconfig")); err != nil {
		return err
	}
	return w.createCluster(ctx)
}

// issueKubeconfig writes the core's kubeconfig to a file, and the one that it shall reach the target
// cluster by to its Secret.
func (w *world) issueKubeconfig(ctx context.Context, path string) error {
	w.kubeconfig = path
	for _, account := range []string{coreAccount, targetAccount} {
		kubeconfig, err := w.plane.ServiceAccountKubeconfig(ctx, namespace, account)
		if err != nil {
			return err
		}
		if err := controlplane.AwaitRights(ctx, kubeconfig); err != nil {
			return errors.Wrapf(err, "waiting for the rights of ServiceAccount %s", account)
		}
		if account == coreAccount {
			err = os.WriteFile(path, kubeconfig, 0o600)
		} else {
			err = w.providers.Client().Create(ctx, kubeconfigSecret(kubeconfig))
		}
		if err != nil {
			return errors.Wrapf(err, "writing the kubeconfig of ServiceAccount %s", account)
		}
	}
	return nil
}

// createCluster creates the Cluster as one that was in use before the core.
func (w *world) createCluster(ctx context.Context) error {
	c := w.providers.Client()
	if w.setting == Second {
		object := controlPlaneObject()
		if err := c.Create(ctx, object); err != nil {
			return errors.Wrap(err, "creating the control plane object")
		}
		object.Object["status"] = controlPlaneStatus()
		if err := c.Status().Update(ctx, object); err != nil {
			return errors.Wrap(err, "writing the status of the control plane object")
		}
	}
	object := cluster(w.setting)
	if err := c.Create(ctx, object); err != nil {
		return errors.Wrap(err, "creating the Cluster")
	}
	object.Status = clusterStatus()
	return errors.Wrap(c.Status().Update(ctx, object), "writing the status of the Cluster")
}

// coreCRDs reads the generated CRDs of the core kinds and, of the further directory, those that are not
// among them. Version v1beta1 is not served, since nothing converts to it here.
func coreCRDs(root, further string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	known := map[string]bool{}
	for _, dir := range []string{filepath.Join(root, generatedCRDs), further} {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			return nil, errors.Errorf("%s has no CRDs: run `make generate`", dir)
		}
		read := envtest.CRDInstallOptions{Paths: []string{dir}, ErrorIfPathMissing: true}
		if err := envtest.ReadCRDFiles(&read); err != nil {
			return nil, errors.Wrapf(err, "reading the CRDs in %s", dir)
		}
		for _, crd := range read.CRDs {
			if known[crd.Name] {
				continue
			}
			known[crd.Name] = true
			unserve(crd, "v1beta1")
			crds = append(crds, crd)
		}
	}
	return crds, nil
}

func unserve(crd *apiextensionsv1.CustomResourceDefinition, version string) {
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Name == version && !v.Storage {
			v.Served = false
		}
	}
}

func createAll(ctx context.Context, c client.Client, objects []client.Object) error {
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return errors.Wrapf(err, "creating %T %s", object, object.GetName())
		}
	}
	return nil
}
