// Command cloudconfig is the manager of the CloudConfig bootstrap provider: it creates the user data of
// machines, their Secrets and tokens in target clusters, and approves their certificate requests.
package main

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/bootstrap/cloudconfig/controller"
	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/remote"
)

const managerName = "millwright-cloudconfig"

// targetTimeout is how long a request to a target cluster may take. Each holds a worker meanwhile.
const targetTimeout = 5 * time.Second

// kubeconfigInterval is how often the kubeconfig of a connection is read again: to watch Secrets takes the right to read them all.
const kubeconfigInterval = time.Minute

// The diagnostics endpoint asks the API server who its caller is and what the caller may do.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() { newOptions().program().Main() }

func run(ctx context.Context, o *options) error {
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	connections := approval.NewConnections(remote.Options{
		Secrets: mgr.GetAPIReader(), Kubeconfig: o.targetKubeconfig, Scheme: mgr.GetScheme(), UserAgent: managerName,
		QPS: o.targetQPS, Burst: o.targetBurst, RequestTimeout: targetTimeout, KubeconfigInterval: kubeconfigInterval,
	})
	err = (&remote.Reconciler{Client: mgr.GetClient(), Connections: connections.Connections, WatchFilter: o.WatchFilter}).
		SetupWithManager(mgr, manager.ControllerOptions[reconcile.Request](o.targetConcurrency))
	if err != nil {
		return err
	}
	outcomes := &approval.Outcomes{}
	err = (&controller.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Targets: connections,
		Recorder: events.For(mgr, managerName), Clock: clock.RealClock{},
		CleanupTimeout: o.cleanupTimeout, TargetNamespace: o.targetNamespace, WatchFilter: o.WatchFilter,
		JoinOverdueAfter: o.joinOverdueAfter, Outcomes: outcomes, TargetKubeconfig: o.targetKubeconfig,
	}).SetupWithManager(ctx, mgr, connections, manager.ControllerOptions[reconcile.Request](o.concurrency))
	if err != nil {
		return err
	}
	err = (&approval.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Targets: connections, TargetNamespace: o.targetNamespace,
		WatchFilter: o.WatchFilter, Recorder: events.For(mgr, managerName), Outcomes: outcomes,
	}).SetupWithManager(ctx, mgr, connections, manager.ControllerOptions[approval.Request](o.concurrency))
	if err != nil {
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "running the manager")
}

func newManager(o *options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, errors.Wrap(err, "building the scheme")
		}
	}
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	settings, err := o.Settings(scheme)
	if err != nil {
		return nil, err
	}
	return manager.New(config, settings)
}
