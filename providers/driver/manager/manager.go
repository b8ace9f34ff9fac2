package manager

import (
	"k8s.io/apimachinery/pkg/runtime"
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

// trimmed keeps in the cache only those fields of Machines and Clusters that the reconciler reads.
func trimmed() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&clusterv1.Machine{}: {Transform: trimMachine},
		&clusterv1.Cluster{}: {Transform: trimCluster},
	}
}
