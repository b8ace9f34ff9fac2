package main

import (
	"os"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"millwright.dev/core/admission"
	"millwright.dev/core/external"
	"millwright.dev/core/rewatch"
	"millwright.dev/core/trim"
)

// cacheSyncTimeout bounds the first reading of all objects; it is long, since large installations are slow to read.
const cacheSyncTimeout = 5 * time.Minute

// newScheme knows the kinds that the core handles as Go types.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(admission.AddToScheme(scheme))
	return scheme
}

// shutdownTimeout is how long the reconciles under way may take once the process is to end. It is shorter than what the
// manifests give the Pod: should they not end, since a queue of controller-runtime can be deadlocked by its shutdown
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3538), the lease is given up all the same.
const shutdownTimeout = 8 * time.Second

// newManager makes the manager with its caches, health checks and diagnostics.
func newManager(rc *rest.Config, o *options) (ctrl.Manager, error) {
	metrics, err := o.diagnostics.Server()
	if err != nil {
		return nil, errors.Wrap(err, "reading the flags of the diagnostics")
	}
	server, err := newWebhookServer(o)
	if err != nil {
		return nil, err
	}
	settings := ctrl.Options{
		Scheme:                     newScheme(),
		Metrics:                    metrics,
		HealthProbeBindAddress:     o.healthAddr,
		PprofBindAddress:           o.profilerAddress,
		LeaderElection:             o.leaderElect,
		LeaderElectionID:           name,
		LeaderElectionNamespace:    o.leaseNamespaceOrOwn(),
		LeaderElectionResourceLock: resourcelock.LeasesResourceLock,
		LeaseDuration:              &o.leaseDuration,
		RenewDeadline:              &o.renewDeadline,
		RetryPeriod:                &o.retryPeriod,
		// The process ends with the manager, so its lease can be given up at once.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		Controller: config.Controller{
			UsePriorityQueue: ptr.To(true), CacheSyncTimeout: cacheSyncTimeout, SkipNameValidation: &o.severalInProcess,
		},
		Cache:  o.cacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	if server != nil {
		settings.WebhookServer = server
	}
	mgr, err := ctrl.NewManager(rc, settings)
	if err != nil {
		return nil, errors.Wrap(err, "making the manager")
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, errors.Wrap(err, "adding the health check")
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, errors.Wrap(err, "adding the readiness check")
	}
	return mgr, addWebhooks(mgr, server, o)
}

// leaseNamespaceOrOwn is where the lease lives. Outside a cluster there is no own namespace.
func (o *options) leaseNamespaceOrOwn() string {
	for _, namespace := range []string{o.leaseNamespace, os.Getenv("POD_NAMESPACE")} {
		if namespace != "" {
			return namespace
		}
	}
	if o.leaderElect {
		return "millwright-system"
	}
	return ""
}

// cacheOptions keep the caches small: of providers' objects what the contracts speak of, no managed fields, and Secrets
// only by metadata and only those of Clusters.
func (o *options) cacheOptions() cache.Options {
	ofClusters, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	utilruntime.Must(err)
	options := cache.Options{
		NewInformer:      rewatch.NewInformer,
		SyncPeriod:       &o.syncPeriod,
		DefaultTransform: trim.Transform(external.Trim),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Label: labels.NewSelector().Add(*ofClusters), Transform: keepIdentity},
		},
	}
	if o.namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	return options
}

// keepIdentity keeps of a Secret only what names it and tells that it has changed.
func keepIdentity(obj any) (any, error) {
	secret, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	secret.ObjectMeta = metav1.ObjectMeta{
		Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
	}
	return secret, nil
}
