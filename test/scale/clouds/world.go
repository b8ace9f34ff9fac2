package clouds

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/measure"
)

// coreCRDs are those of the core kinds, relative to the repository.
const coreCRDs = "config/core/crd/generated"

// auditPolicy records the requests of the provider alone, by what they were for.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%q]
- level: None
`

// world is an API server and an account, with everything that a provider finds there.
type world struct {
	provider *Provider
	plane    *controlplane.ControlPlane
	account  *ec2.Server
	front    *httptest.Server
	client   client.Client
	audit    *measure.AuditLog
	// kubeconfig is the path of the provider's.
	kubeconfig string
}

// newWorld starts API server and account; close must be called when there is no error.
func newWorld(ctx context.Context, p *Provider, o Options) (*world, error) {
	policy := filepath.Join(o.Dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, accountUser(p)), 0o600); err != nil {
		return nil, errors.Wrap(err, "writing the audit policy")
	}
	w := &world{provider: p, audit: &measure.AuditLog{Path: filepath.Join(o.Dir, "audit.log"), Core: accountUser(p)}}
	// Runs in the same directory begin a log of their own.
	if err := os.RemoveAll(w.audit.Path); err != nil {
		return nil, errors.Wrap(err, "removing the audit log of an earlier run")
	}
	var err error
	w.plane, err = controlplane.Start(ctx, controlplane.Options{
		Name: "clouds", LogDir: o.Dir, WithoutControllers: true,
		APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + w.audit.Path, "--enable-priority-and-fairness=false"},
	})
	if err != nil {
		return nil, errors.Wrap(err, "starting the control plane")
	}
	w.account = ec2.New(ec2.Options{Region: region, Delays: o.Delays, Throttles: ec2.DefaultThrottles()})
	w.front = httptest.NewServer(w.account)
	if err := w.fill(ctx, o); err != nil {
		return nil, kerrors.NewAggregate([]error{err, w.close()})
	}
	return w, nil
}

// close stops the API server first: a provider that still runs does not react to failures of the account then.
func (w *world) close() error {
	err := errors.Wrap(w.plane.Stop(), "stopping the control plane")
	w.front.CloseClientConnections()
	w.front.Close()
	w.account.Close()
	return err
}

func (w *world) fill(ctx context.Context, o Options) error {
	install := envtest.CRDInstallOptions{
		Paths: append([]string{filepath.Join(o.Root, coreCRDs)}, w.provider.CRDs...), ErrorIfPathMissing: true,
	}
	if _, err := envtest.InstallCRDs(w.plane.Config(), install); err != nil {
		return errors.Wrap(err, "installing CRDs (those of the core come from `make generate`)")
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return errors.Wrap(err, "filling the scheme")
		}
	}
	config := w.plane.Config()
	// The harness is not what is measured.
	config.QPS = -1
	var err error
	if w.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return errors.Wrap(err, "creating a client")
	}
	for _, object := range foundations(w.provider) {
		if err := w.client.Create(ctx, object); err != nil {
			return errors.Wrapf(err, "creating %T %s", object, object.GetName())
		}
	}
	kubeconfig, err := w.plane.ServiceAccountKubeconfig(ctx, w.provider.Namespace, account)
	if err != nil {
		return err
	}
	if err := controlplane.AwaitRights(ctx, kubeconfig); err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(o.Dir, "provider.kubeconfig")
	if err := os.WriteFile(w.kubeconfig, kubeconfig, 0o600); err != nil {
		return errors.Wrap(err, "writing the kubeconfig of the provider")
	}
	return w.createCluster(ctx)
}

func (w *world) createCluster(ctx context.Context) error {
	if w.provider.Prepare != nil {
		if err := w.provider.Prepare(ctx, w.client); err != nil {
			return err
		}
	}
	object := cluster(w.provider)
	if err := w.client.Create(ctx, object); err != nil {
		return errors.Wrap(err, "creating the Cluster")
	}
	object.Status = clusterStatus()
	return errors.Wrap(w.client.Status().Update(ctx, object), "writing the status of the Cluster")
}
