package certificates

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/version"
)

// maxRetry bounds the delay after a failed reconcile: a webhook that fails closed should not wait for long.
const maxRetry = 30 * time.Second

// Settings say what is issued, where it is stored and who trusts it.
type Settings struct {
	// Secret holds the certificates.
	Secret types.NamespacedName
	// Names are the DNS names of the webhook server, at least one.
	Names []string
	// Configuration is the name of both webhook configurations.
	Configuration string
	// CRDs are the names of the CRDs that may be converted by webhook.
	CRDs []string
	// Lifetimes of what is created; DefaultLifetimes when zero.
	Lifetimes Lifetimes
}

// Add adds the reconciler to a manager. It watches the Secret and the two configurations by name: it needs no rights on others.
func Add(mgr ctrl.Manager, s Settings) (*Reconciler, error) {
	if s.Lifetimes == (Lifetimes{}) {
		s.Lifetimes = DefaultLifetimes
	}
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	only := map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{s.Secret.Namespace: {FieldSelector: named(s.Secret.Name)}}},
	}
	for _, kind := range configurationKinds {
		only[metadata(kind)] = cache.ByObject{Field: named(s.Configuration)}
	}
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), ByObject: only,
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, errors.Wrap(err, "creating the cache of the certificates")
	}
	if err := mgr.Add(everywhere{own}); err != nil {
		return nil, errors.Wrap(err, "adding the cache of the certificates")
	}
	r := &Reconciler{
		settings: s, issuer: newIssuer(s.Names, s.Lifetimes), client: mgr.GetClient(), live: mgr.GetAPIReader(), first: make(chan struct{}),
	}
	return r, r.addController(mgr, own)
}

// everywhere has the manager run a cache on each replica, leader or not.
type everywhere struct{ cache.Cache }

// GetCache has the manager wait for the cache.
func (e everywhere) GetCache() cache.Cache { return e.Cache }

func (r *Reconciler) addController(mgr ctrl.Manager, own cache.Cache) error {
	enqueue := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: r.settings.Secret}}
	})
	converted := predicate.NewPredicateFuncs(func(crd client.Object) bool { return slices.Contains(r.settings.CRDs, crd.GetName()) })
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).Named("webhook-certificate").
		WithOptions(controller.Options{
			NeedLeaderElection: ptr.To(false),
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, maxRetry),
		}).
		WatchesRawSource(source.Kind[client.Object](own, &corev1.Secret{}, enqueue)).
		WatchesMetadata(metadata(version.CRDKind), enqueue, builder.WithPredicates(converted, changed))
	for _, kind := range configurationKinds {
		b = b.WatchesRawSource(source.Kind[client.Object](own, metadata(kind), enqueue, changed))
	}
	return errors.Wrap(b.Complete(r), "adding the controller of the webhooks' certificate")
}
