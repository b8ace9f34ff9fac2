package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/manager"
	"millwright.dev/core/admission"
	"millwright.dev/core/external"
	"millwright.dev/core/trim"
)

// newScheme knows the kinds that the core handles as Go types.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(clusterv1.AddToScheme(scheme))
	utilruntime.Must(admission.AddToScheme(scheme))
	return scheme
}

// newManager makes the manager with its caches, health checks and diagnostics.
func newManager(rc *rest.Config, o *options) (ctrl.Manager, error) {
	server, err := newWebhookServer(o)
	if err != nil {
		return nil, err
	}
	settings, err := o.Settings(newScheme())
	if err != nil {
		return nil, err
	}
	settings.LeaderElectionResourceLock = resourcelock.LeasesResourceLock
	settings.Controller.SkipNameValidation = &o.severalInProcess
	settings.Cache = o.cacheOptions(settings.Cache)
	settings.Client = client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
	if server != nil {
		settings.WebhookServer = server
	}
	mgr, err := manager.New(rc, settings)
	if err != nil {
		return nil, err
	}
	return mgr, addWebhooks(mgr, server, o)
}

// cacheOptions keep the caches small: of providers' objects what the contracts speak of, no managed fields, and Secrets
// only by metadata and only those of Clusters.
func (o *options) cacheOptions(options cache.Options) cache.Options {
	ofClusters, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	utilruntime.Must(err)
	options.DefaultTransform = trim.Transform(external.Trim)
	options.ByObject = map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: labels.NewSelector().Add(*ofClusters), Transform: keepIdentity},
	}
	return options
}

// keepIdentity keeps of a Secret only its name and version.
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
