package manager

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controllermanager "millwright.dev/contracts/controller/manager"
)

// New returns a controller manager for the options, with health checks. adjust may change what
// the options do not cover.
func New(rc *rest.Config, scheme *runtime.Scheme, o *Options, adjust ...func(*ctrl.Options)) (ctrl.Manager, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	settings, err := o.Settings(scheme)
	if err != nil {
		return nil, err
	}
	settings.Cache.ByObject = trimmed()
	for _, f := range adjust {
		f(&settings)
	}
	return controllermanager.New(o.Limit(rc), settings)
}

// Run runs a provider until the context ends: setup adds its reconcilers to a manager that knows the kinds of addKinds beside those of
// Kubernetes and Cluster API.
func Run(ctx context.Context, o *Options, addKinds func(*runtime.Scheme) error, setup func(ctrl.Manager) error) error {
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addKinds}
	if err := kinds.AddToScheme(scheme); err != nil {
		return errors.Wrap(err, "filling the scheme")
	}
	rc, err := o.RESTConfig()
	if err != nil {
		return err
	}
	mgr, err := New(rc, scheme, o)
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "running the manager")
}

// trimmed keeps in the cache only those fields of Machines, Clusters and Namespaces that the reconcilers read.
func trimmed() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Namespace{}:  {Transform: trimNamespace},
		&clusterv1.Machine{}: {Transform: trimMachine},
		&clusterv1.Cluster{}: {Transform: trimCluster},
	}
}
